"""Figures: marks (arrays in, marks out), drawn once by Matplotlib and once by Plotly. No model is ever seen here."""
