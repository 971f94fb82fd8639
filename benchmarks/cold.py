"""Cold and warm starts, each in a process of its own: commands, and where the time of a first fit goes.

    python benchmarks/cold.py [--repeats 3] [--only NAME ...] [--out build/performance]

A command is run with an empty compilation cache (cold) and again with what that left behind (warm). A fit of a noisy
pendulum is split into import, tracing, lowering, compiling (or reading from the cache) and the rest, by the durations
that JAX reports (functions traced inside of others count in both). Medians of the repeats; peak memory is the largest.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import median

SGPD = str(Path(sys.executable).with_name("sgpd"))
EVENTS = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
    "/jax/compilation_cache/cache_retrieval_time_sec": "read from cache",
}
MOST = 15  # programs in the table


def commands(scratch: Path) -> dict[str, list[str]]:
    """What is run, by name."""
    return {
        "python -c pass": [sys.executable, "-c", "pass"],
        "import jax": [sys.executable, "-c", "import jax"],
        "import sgpd": [sys.executable, "-c", "import sgpd"],
        "import sgpd; sgpd.fit": [sys.executable, "-c", "import sgpd; sgpd.fit"],
        "sgpd --help": [SGPD, "--help"],
        "sgpd systems": [SGPD, "systems"],
        "sgpd demo": [SGPD, "demo", "--out", str(scratch / "demo")],
        "fit": [sys.executable, str(Path(__file__).resolve()), "--child"],
    }


def run(command: list[str], cache: Path) -> dict:
    """Seconds, peak megabytes and standard output of one process with that compilation cache."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("JAX_COMPILATION_CACHE")}
    environment = kept | {"XDG_CACHE_HOME": str(cache), "MPLCONFIGDIR": str(cache / "matplotlib")}
    begin = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return {
        "seconds": seconds,
        "busy": usage.ru_utime + usage.ru_stime,
        "megabytes": usage.ru_maxrss / 1024,
        "text": text,
    }


def cold_and_warm(name: str, repeats: int) -> dict[str, list[dict]]:
    """Runs of one command, each pair with a cache of its own."""
    runs = {"cold": [], "warm": []}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as scratch:
            for state in runs:
                runs[state].append(run(commands(Path(scratch))[name], Path(scratch) / "cache"))
    return runs


def child():
    """Fit in this process, and print where its time went."""
    began = time.perf_counter()
    import jax

    spent, programs = defaultdict(float), defaultdict(lambda: defaultdict(float))

    def listen(event: str, seconds: float, **about):
        if event in EVENTS:
            spent[EVENTS[event]] += seconds
            name = about.get("fun_name", "unnamed").removeprefix("jit(").removesuffix(")")
            programs[name][EVENTS[event]] += seconds
            programs[name]["times " + EVENTS[event]] += 1

    jax.monitoring.register_event_duration_secs_listener(listen)
    import sgpd
    from sgpd.xla.cache import keep_compiled_programs

    sgpd.xla.tune()
    keep_compiled_programs()
    fit = sgpd.fit
    imported = time.perf_counter()
    times, states = sgpd.systems.get("pendulum").record(seed=0)
    data = sgpd.Trajectories.from_arrays(times, states, names=["p", "q"])
    recorded = time.perf_counter()
    first = _seconds(lambda: fit(data, structure="separable", seed=0))
    split, by_program = dict(spent), {name: dict(parts) for name, parts in programs.items()}
    again = _seconds(lambda: fit(data, structure="separable", seed=0))
    parts = {"import": imported - began, "record": recorded - imported, "first fit": first, "second fit": again}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"parts": parts, "split": split, "programs": by_program, "megabytes": peak}))


def _seconds(work) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def table_of_commands(found: dict[str, dict[str, list[dict]]]) -> list[str]:
    """Seconds and memory by command."""
    lines = [
        "| command | cold s | warm s | cold processor s | warm processor s | peak MB |",
        "|---|---|---|---|---|---|",
    ]
    for name, runs in found.items():
        middle = lambda what, key: median(one[key] for one in runs[what])  # noqa: B023
        peak = max(one["megabytes"] for each in runs.values() for one in each)
        seconds = [middle(state, key) for key in ("seconds", "busy") for state in ("cold", "warm")]
        lines.append(f"| `{name}` | {' | '.join(f'{s:.2f}' for s in seconds)} | {peak:.0f} |")
    return lines


def table_of_fit(fits: dict[str, list[dict]]) -> list[str]:
    """Where the time of a fit goes: what JAX reports of the first fit, and what remains of it."""
    rows = ["import", "record", "first fit", *EVENTS.values(), "rest of first fit", "second fit"]
    lines = ["| part of a fit | cold s | warm s |", "|---|---|---|"]
    for row in rows:
        values = [median(_part(row, one) for one in fits[state]) for state in ("cold", "warm")]
        lines.append(f"| {row} | {values[0]:.2f} | {values[1]:.2f} |")
    return lines


def _part(row: str, one: dict) -> float:
    if row == "rest of first fit":
        # reading from the cache happens within what is reported as compiling
        return one["parts"]["first fit"] - sum(one["split"].get(k, 0.0) for k in ("trace", "lower", "compile"))
    return one["parts"].get(row, one["split"].get(row, 0.0))


def table_of_programs(fits: dict[str, list[dict]]) -> list[str]:
    """The programs that take the compiler longest, with an empty cache."""
    names = {name for one in fits["cold"] for name in one["programs"]}
    middle = lambda name, key: median(one["programs"].get(name, {}).get(key, 0.0) for one in fits["cold"])
    rows = [(name, *(middle(name, key) for key in ("times compile", "trace", "lower", "compile"))) for name in names]
    rows.sort(key=lambda row: -sum(row[2:]))
    lines = ["| program | compiled | trace s | lower s | compile s |", "|---|---|---|---|---|"]
    shown = [f"| `{n}` | {int(k)} | {t:.2f} | {low:.2f} | {c:.2f} |" for n, k, t, low, c in rows[:MOST]]
    others = [sum(row[i] for row in rows[MOST:]) for i in range(1, 5)]
    rest = f"| {max(len(rows) - MOST, 0)} others | {int(others[0])} | " + " | ".join(f"{o:.2f}" for o in others[1:])
    return [*lines, *shown, rest + " |"]


def main():
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=list(commands(Path())), default=list(commands(Path())))
    parser.add_argument("--out", type=Path, default=Path("build/performance"))
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        return child()
    load = os.getloadavg()
    found = {name: cold_and_warm(name, chosen.repeats) for name in chosen.only}
    fits = {state: [json.loads(one["text"]) for one in runs] for state, runs in found.get("fit", {}).items()}
    around = f"{os.cpu_count()} cores, load {', '.join(f'{value:.1f}' for value in load)}, {chosen.repeats} repeats."
    lines = ["# Cold and warm starts", "", around, "", *table_of_commands(found)]
    if fits:
        lines += ["", *table_of_fit(fits), "", *table_of_programs(fits)]
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / "cold.md").write_text("\n".join(lines) + "\n")
    bare = {
        n: {s: [{k: v for k, v in one.items() if k != "text"} for one in r] for s, r in runs.items()}
        for n, runs in found.items()
    }
    (chosen.out / "cold.json").write_text(json.dumps({"load": load, "commands": bare, "fits": fits}, indent=1))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
