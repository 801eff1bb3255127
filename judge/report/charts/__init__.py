<<<<<<< HEAD
"""Charts as functions of numbers and names, each with its SVG."""
=======
"""The charts of reports: each function draws plain data as SVG, whose classes the page colours."""
>>>>>>> 76f0636 (Renderers are in judge/report/renderers; the old ones are gone)
