# Sourced by ./run and ./test: leaves a ready `.venv` beside them, or says in one line what is missing.
# `prepare EXTRAS` does nothing when pyproject.toml has not changed since the last time.

say() { printf '%s\n' "$*" >&2; }

find_python() {
    for candidate in "${HOLDFAST_PYTHON:-}" python3 python3.13 python3.12 python3.11 python3.14 python; do
        [ -n "$candidate" ] || continue
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            printf '%s' "$candidate"
            return
        fi
    done
    say "holdfast: Python 3.11 or newer is needed and was not found (set HOLDFAST_PYTHON to name one)."
    exit 1
}

prepare() {
    extras=$1
    stamp=".venv/prepared-$extras-$(cksum <pyproject.toml | cut -d' ' -f1)"
    [ -f "$stamp" ] && return
    if [ ! -x .venv/bin/python ]; then
        python=$(find_python) || exit 1
        say "holdfast: making .venv with $("$python" --version 2>&1) …"
        "$python" -m venv .venv || { say "holdfast: 'python -m venv' failed; on Debian install python3-venv."; exit 1; }
    fi
    say "holdfast: installing what $extras needs (the first time takes a minute) …"
    if command -v uv >/dev/null 2>&1; then
        UV_PYTHON_DOWNLOADS=never uv pip install --quiet --python .venv/bin/python -e ".[$extras]"
    else
        # The pip that older Pythons carry mishandles some extras: upgrade it first.
        .venv/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip &&
            .venv/bin/python -m pip install --quiet --disable-pip-version-check -e ".[$extras]"
    fi || { say "holdfast: installing failed; is a package registry reachable?"; exit 1; }
    : >"$stamp"
}

# A real blob storage for the tests, where npm may fetch one; outside the tree, and once.
prepare_azurite() {
    folder="${XDG_CACHE_HOME:-$HOME/.cache}/holdfast/azurite-3.35.0"
    [ -x "$folder/node_modules/.bin/azurite-blob" ] && return
    command -v npm >/dev/null 2>&1 || return 0
    say "holdfast: installing Azurite for the tests of object storage …"
    mkdir -p "$folder"
    timeout 300 npm install --silent --no-fund --no-audit --prefix "$folder" azurite@3.35.0 >/dev/null 2>&1 ||
        say "holdfast: Azurite could not be installed; its tests are skipped."
}

# The compiler that the API's types are checked with, in the same way.
prepare_typescript() {
    folder="${XDG_CACHE_HOME:-$HOME/.cache}/holdfast/typescript-5.9.3"
    [ -x "$folder/node_modules/.bin/tsc" ] && return
    command -v npm >/dev/null 2>&1 || return 0
    say "holdfast: installing TypeScript for the test of the API's types …"
    mkdir -p "$folder"
    timeout 300 npm install --silent --no-fund --no-audit --prefix "$folder" typescript@5.9.3 >/dev/null 2>&1 ||
        say "holdfast: TypeScript could not be installed; its test is skipped."
}

# A real browser for the tests of the pages: Debian's package, where root may install it; tried once, whatever comes of it.
prepare_chromium() {
    for candidate in chromium-headless-shell chromium google-chrome google-chrome-stable chromium-browser; do
        command -v "$candidate" >/dev/null 2>&1 && return
    done
    [ -f .venv/chromium-tried ] && return
    : >.venv/chromium-tried
    { command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; } || return 0
    say "holdfast: installing Chromium for the tests of the pages …"
    install="apt-get install -y -qq --no-install-recommends"
    DEBIAN_FRONTEND=noninteractive timeout 300 sh -c \
        "$install chromium-headless-shell || { apt-get update -qq && { $install chromium-headless-shell || $install chromium; }; }" \
        >/dev/null 2>&1 </dev/null || say "holdfast: Chromium could not be installed; its tests are skipped."
}
