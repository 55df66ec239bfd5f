"""ade: turns each messy spreadsheet into a normalised workbook, with rules that a user writes in Python."""
