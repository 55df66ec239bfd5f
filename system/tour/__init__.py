"""The tour: submits sample runs that show each feature of Holdfast, again and again."""
