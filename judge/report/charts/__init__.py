"""Charts as functions of numbers and names, each with its SVG."""
