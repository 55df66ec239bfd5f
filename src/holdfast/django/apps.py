"""The Django application `holdfast.django`."""

from __future__ import annotations

from django.apps import AppConfig


class HoldfastConfig(AppConfig):  # type: ignore[misc]
    name = "holdfast.django"
    label = "holdfast"
    verbose_name = "Holdfast"
