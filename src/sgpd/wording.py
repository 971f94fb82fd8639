"""Numbers as people write them."""

import math


def number(value: float, digits: int = 3) -> str:
    """So many significant digits; powers of ten only where plain digits would be hard to read."""
    rounded = float(f"{value:.{digits - 1}e}") if math.isfinite(value) else value
    if rounded == 0 or not math.isfinite(rounded):
        return f"{rounded:g}"
    if 1e-3 <= abs(rounded) < 1e6:
        decimals = max(digits - 1 - math.floor(math.log10(abs(rounded))), 0)
        text = f"{rounded:.{decimals}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa, exponent = f"{rounded:.{digits - 1}e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{exponent}"


def share(value: float) -> str:
    """A share in percent that is 0 or 100 only where it is exactly that."""
    if 0 < value < 0.01:
        return "< 1 %"
    if 0.99 < value < 1:
        return "> 99 %"
    return f"{100 * value:.0f} %"


def with_unit(text: str, unit: str) -> str:
    """A number and its unit, where there is one."""
    return f"{text} {unit}" if unit else text


def plus_minus(value: float, std: float) -> str:
    """A value with its standard deviation, which has two digits and decides how many the value has."""
    if not (math.isfinite(std) and std > 0):
        return f"{value:.4g}"
    if not 1e-4 <= std < 1e6:
        return f"{value:.3g} ± {std:.1e}"
    decimals = 1 - math.floor(math.log10(std))
    value, std = round(value, decimals), round(std, decimals)
    return f"{value:.{max(decimals, 0)}f} ± {std:.{max(decimals, 0)}f}"
