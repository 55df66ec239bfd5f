"""ade: turns messy spreadsheets into one normalised workbook, by rules that a user writes in Python."""
