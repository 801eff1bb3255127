"""Charts: geometry, SVG and PNG."""
