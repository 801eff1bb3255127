"""The charts of reports: each function draws plain data as SVG, whose classes the page colours."""
