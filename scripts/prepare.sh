# Sourced by ./run and ./test: creates `.venv`, or prints in one line what is missing.
# `prepare EXTRAS` does nothing if pyproject.toml has not changed since the last time.

say() { printf '%s\n' "$*" >&2; }

find_python() {
    for candidate in "${HOLDFAST_PYTHON:-}" python3 python3.13 python3.12 python3.11 python3.14 python; do
        [ -n "$candidate" ] || continue
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            printf '%s' "$candidate"
            return
        fi
    done
    say "holdfast: Python 3.11 or newer was not found; install it, or set HOLDFAST_PYTHON to its path."
    exit 1
}

prepare() {
    extras=$1
    stamp=".venv/prepared-$extras-$(cksum <pyproject.toml | cut -d' ' -f1)"
    [ -f "$stamp" ] && return
    if [ ! -x .venv/bin/python ]; then
        python=$(find_python) || exit 1
        say "holdfast: creating .venv with $("$python" --version 2>&1) …"
        "$python" -m venv .venv || { say "holdfast: 'python -m venv' failed; on Debian install python3-venv."; exit 1; }
    fi
    say "holdfast: installing the packages for $extras (this takes a minute the first time) …"
    if command -v uv >/dev/null 2>&1; then
        UV_PYTHON_DOWNLOADS=never uv pip install --quiet --python .venv/bin/python -e ".[$extras]"
    else
        # The pip of older Pythons installs some extras wrongly: upgrade it first.
        .venv/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip &&
            .venv/bin/python -m pip install --quiet --disable-pip-version-check -e ".[$extras]"
    fi || { say "holdfast: installing failed; check that a package registry can be reached."; exit 1; }
    : >"$stamp"
}

# Azurite, a blob storage for the tests: installed once with npm, outside the repository.
prepare_azurite() {
    folder="${XDG_CACHE_HOME:-$HOME/.cache}/holdfast/azurite-3.35.0"
    [ -x "$folder/node_modules/.bin/azurite-blob" ] && return
    command -v npm >/dev/null 2>&1 || return 0
    say "holdfast: installing Azurite for the tests of object storage …"
    mkdir -p "$folder"
    timeout 300 npm install --silent --no-fund --no-audit --prefix "$folder" azurite@3.35.0 >/dev/null 2>&1 ||
        say "holdfast: Azurite could not be installed; its tests are skipped."
}

# TypeScript, which checks the types of the API: installed in the same way.
prepare_typescript() {
    folder="${XDG_CACHE_HOME:-$HOME/.cache}/holdfast/typescript-5.9.3"
    [ -x "$folder/node_modules/.bin/tsc" ] && return
    command -v npm >/dev/null 2>&1 || return 0
    say "holdfast: installing TypeScript for the test of the API's types …"
    mkdir -p "$folder"
    timeout 300 npm install --silent --no-fund --no-audit --prefix "$folder" typescript@5.9.3 >/dev/null 2>&1 ||
        say "holdfast: TypeScript could not be installed; its test is skipped."
}

# Chromium for the tests of the pages: the Debian package, if we are root. Tried only once, even if it fails.
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
