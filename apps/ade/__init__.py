"""ade: messy spreadsheets become one normalised workbook, by rules that a user writes in Python."""
