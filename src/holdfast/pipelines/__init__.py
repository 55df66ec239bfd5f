"""Pipelines: runs made of stages. The stages declared in code, the stored plan, progress and reruns."""
