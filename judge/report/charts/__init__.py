"""Draw charts as SVG: intervals, heat maps, histograms and calibration.

Colours come from classes, so that a stylesheet sets them. Positions are in pixels.

Filled are `bar` (also `bar best` and `bar worse`), `dot`, `heat-good`, `heat-bad` and the texts
`label`, `value` and `tick`; lines are `ci` (an interval), `zero`, `axis` and `grid`. Shades are
`fill-opacity` attributes.
"""
