"""Gunicorn configuration for k2dailybrief-web: `gunicorn -c python:apps.dailybrief.gunicorn_config`."""

from __future__ import annotations

import os

wsgi_app = "apps.dailybrief.web:app"
worker_class = "apps.dailybrief.gunicorn_worker.Worker"
workers = int(os.environ.get("WEB_CONCURRENCY", "2"))
bind = os.environ.get("DAILYBRIEF_BIND", "127.0.0.1:8710")
graceful_timeout = 10
timeout = 60
preload_app = False  # a database connection must not be shared with a forked process
proc_name = "k2dailybrief-web"
accesslog = None
control_socket_disable = True  # signals are enough
