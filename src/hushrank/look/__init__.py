"""How every page of hushrank looks: one stylesheet, one chart, one way to write numbers."""
