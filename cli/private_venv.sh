# Environments of this checkout: made on first use, replaced whole, never half.
#
# For cli/durarepo and tests/run, which set $top to the checkout and source this. An environment
# is a link, NAME, to a folder below NAME.d. It is built there, in its final place, and becomes
# current by one rename of the link; who runs from the folder before keeps it until the build
# after the next. Nothing here needs root. Start at make_venv.

: "${top:?}"

# is_ready VENV RECIPE: is VENV whole, of this checkout and made from RECIPE as it is now?
# Every command passes here, so it starts one process (cmp) and no Python.
is_ready() {
    cmp -s "$2" "$1/made-from" 2>/dev/null && [ -x "$1/bin/python" ] || return 1
    {
        IFS= read -r made_for && [ "$made_for" = "$top" ] || return 1
        while IFS= read -r part; do
            [ -e "$1/$part" ] || return 1
        done
    } <"$1/made-of"
}

# fail ERROR HINT: two lines and exit code 14 (spec/cli.md, section 2).
fail() {
    printf 'durarepo: error: %s\ndurarepo: hint: %s\n' "$1" "$2" >&2
    exit 14
}

# find_python: print the path of an interpreter that can run durarepo. The path is the real,
# versioned one, so that an environment is seen to be broken once the system has moved on.
find_python() {
    for candidate in python3 python3.13 python3.12 python3.11; do
        "$candidate" -c '
import os, sys
if not (3, 11) <= sys.version_info < (3, 15):
    sys.exit(1)
print(os.path.realpath(sys.executable))' 2>/dev/null && return
    done
    return 1
}

# make_empty: fill $build with an environment without packages, in whichever way this machine
# allows: with its own pip, or for the pip of $python (Debian has it apart from venv).
make_empty() {
    "$python" -m venv "$build" && return
    rm -rf "$build"
    "$python" -m virtualenv --quiet "$build" && return
    rm -rf "$build"
    "$python" -m pip --version && "$python" -m venv --without-pip "$build"
}

# pip_install ARGUMENT...: install packages into $build.
pip_install() {
    set -- install --quiet --no-input --disable-pip-version-check "$@"
    if [ -x "$build/bin/pip" ]; then
        "$build/bin/python" -m pip "$@"
    else
        "$python" -m pip --python "$build/bin/python" "$@"
    fi
}

# make_venv VENV RECIPE ARGUMENT...: make VENV with `pip install ARGUMENT...`.
# Two at once: the second waits for the first and uses its work. Without flock(1) both build and
# the last link wins; both are whole.
make_venv() {
    venv=$1 recipe=$2
    shift 2
    mkdir -p "$venv.d" 2>/dev/null ||
        fail "cannot write to '$top'" "make the checkout yours, or clone it again"
    for place in "$top" "$venv.d" "$venv.d/lock"; do
        if [ -e "$place" ] && [ ! -w "$place" ]; then
            fail "cannot write to '$place'" "make the checkout yours, or clone it again"
        fi
    done
    if command -v flock >/dev/null 2>&1; then
        exec 9>>"$venv.d/lock"
        flock 9
        if is_ready "$venv" "$recipe" 2>/dev/null; then
            exec 9>&-
            return
        fi
        drop_old
    fi
    if [ -e "$venv" ] && [ ! -h "$venv" ]; then
        fail "'$venv' is in the way" "it was not made by durarepo; move it elsewhere"
    fi
    python=$(find_python) || fail "no Python 3.11 to 3.14 found" "as root: apt-get install python3"
    printf 'durarepo: installing into %s, once\n' "$venv" >&2
    build=$(mktemp -d "$venv.d/XXXXXXXX")
    trap 'rm -rf "$build" "$build.log"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' HUP TERM
    unset PYTHONHOME PYTHONPATH
    make_empty >"$build.log" 2>&1 ||
        fail "'$python' can make no virtual environment" "as root: apt-get install python3-venv"
    if ! pip_install "$@" >"$build.log" 2>&1; then
        cat "$build.log" >&2
        fail "packages could not be installed" "the lines above say why; run it again once mended"
    fi
    make_current
    rm -f "$build.log"
    trap - EXIT INT HUP TERM
    exec 9>&-
}

# make_current: note what $build is made of, then let $venv point to it.
make_current() {
    {
        printf '%s\n' "$top"
        (cd "$build" && ls -d lib/python*/site-packages/*.dist-info)
    } >"$build/made-of"
    cp "$recipe" "$build/made-from"
    chmod 755 "$build"
    ln -s "${venv##*/}.d/${build##*/}" "$build.link"
    "$build/bin/python" -c 'import os, sys; os.replace(*sys.argv[1:])' "$build.link" "$venv"
}

# drop_old: remove all builds but the current one. Only with the lock held.
drop_old() {
    current=$(readlink "$venv" 2>/dev/null || :)
    for old in "$venv".d/*; do
        case $old in
        */lock | */"${current##*/}") ;;
        *) rm -rf "$old" ;;
        esac
    done
}
