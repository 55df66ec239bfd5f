"""The version of this Holdfast."""

from importlib.metadata import version

VERSION = version("holdfast")
