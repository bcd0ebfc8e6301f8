"""The settings by which jobs start automatically, merged from defaults, patterns and tables."""
