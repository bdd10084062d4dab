"""What every layer may use: checked arrays, files, many calls at once, processes; nothing of two-view geometry."""
