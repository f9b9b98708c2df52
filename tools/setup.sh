# Sourced by ./run and ./test: install what is missing, configure, build. POSIX sh; the caller is in the repository root.

# missing_packages PART...: Debian packages that are not there, one a line, with what each is for. PART is run (for ./run)
# or a part of ./test.
missing_packages() {
    case " $* " in
    *" lean "* | *" release "* | *" asan "* | *" tsan "* | *" peers "*)
        command -v python3 >/dev/null 2>&1 || echo "python3: the lean check and some tests' servers and clients" ;;
    esac
    [ "$*" != lean ] || return 0
    command -v cc >/dev/null 2>&1 || echo "gcc: the C compiler"
    [ -f /usr/include/stdio.h ] || echo "libc6-dev: the C library's headers"
    command -v cmake >/dev/null 2>&1 || echo "cmake: configures the build"
    command -v ninja >/dev/null 2>&1 || echo "ninja-build: runs the build"
    command -v pkg-config >/dev/null 2>&1 || echo "pkg-config: finds the libraries"
    command -v curl >/dev/null 2>&1 || echo "curl: sends the first request"
    have_library libevent_pthreads || echo "libevent-dev: the server's event loop"
    have_library jansson || echo "libjansson-dev: JSON"
    have_library libutf8proc || echo "libutf8proc-dev: Unicode normalisation for the token map"
    case " $* " in
    *" release "* | *" asan "* | *" tsan "* | *" peers "* | *" long "* | *" tidy "*)
        have_library cmocka || echo "libcmocka-dev: the unit tests" ;;
    esac
    case " $* " in
    *" fuzz "*)
        command -v clang >/dev/null 2>&1 || echo "clang: the fuzz targets"
        have_fuzzer || echo "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev: libFuzzer" ;;
    esac
}

have_library() {
    command -v pkg-config >/dev/null 2>&1 && pkg-config --exists "$1" 2>/dev/null
}

have_fuzzer() {
    command -v clang >/dev/null 2>&1 || return 0 # asked again once clang is there
    [ -f "$(clang -print-file-name="libclang_rt.fuzzer-$(uname -m).a")" ] ||
        ls "$(clang -print-resource-dir)"/lib/linux/libclang_rt.fuzzer-*.a >/dev/null 2>&1
}

# apt_install WHY PACKAGE...: say it, do it. Fails with a clear message where it cannot be done.
apt_install() {
    why=$1
    shift
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "paceline: there is no apt-get here; install by other means ($why): $*" >&2
        return 1
    fi
    as_root=
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null 2>&1; then
            echo "paceline: neither root nor sudo here; as root, then call this again ($why):" >&2
            echo "  apt-get update && apt-get install $*" >&2
            return 1
        fi
        as_root=sudo
    fi
    echo "paceline: installing with apt ($why): $*" >&2
    log=$(mktemp)
    if $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q update >"$log" 2>&1 &&
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends "$@" >>"$log" 2>&1; then
        rm -f "$log"
        return 0
    fi
    tail -n 20 "$log" >&2
    rm -f "$log"
    echo "paceline: apt could not install: $*" >&2
    return 1
}

# setup_packages PART...
setup_packages() {
    missing=$(missing_packages "$@")
    if [ -z "$missing" ]; then
        return 0
    fi
    echo "paceline: missing here:" >&2
    echo "$missing" | sed 's/^/  /' >&2
    # shellcheck disable=SC2046
    apt_install "for $*" $(echo "$missing" | sed 's/:.*//') || return 1
    # What a package brings shows only now (libFuzzer comes beside clang).
    still=$(missing_packages "$@" | sed 's/:.*//')
    if [ -n "$still" ]; then
        # shellcheck disable=SC2086
        apt_install "for $*" $still || return 1
    fi
}

# watched WHAT LOG COMMAND...: the command, its output in LOG; meanwhile a line every $watch_every seconds (10 unless set)
# on how far it is, from the last "k/n" that a line of LOG begins with, be it ninja's "[k/n]" or ctest's "k/n Test".
watched() {
    watch_what=$1 watch_log=$2
    shift 2
    : >"$watch_log"
    (
        # The sleep must not hold the terminal or a pipe open once the command is done.
        while sleep "${watch_every:-10}" >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
            at=$(sed -n 's|^ *\[\{0,1\}\([0-9][0-9]*\)/\([0-9][0-9]*\).*|\1 of \2|p' "$watch_log" | tail -n 1)
            [ -z "$at" ] || echo "paceline: $watch_what: $at"
        done
    ) &
    watcher=$!
    watch_rc=0
    "$@" >"$watch_log" 2>&1 || watch_rc=$?
    kill "$watcher" 2>/dev/null || true
    wait "$watcher" 2>/dev/null || true
    return "$watch_rc"
}

# build PRESET [TARGET]: configure when that was never done, then build; quiet unless it fails. With a TARGET alone the
# tests are left out of a first configuration, and so are the packages that only they need.
build() {
    mkdir -p "build/$1"
    log=build/$1/setup.log
    tests=
    if [ ! -f "build/$1/build.ninja" ]; then
        [ -z "${2-}" ] || tests=-DPACELINE_TESTS=OFF
        configure=yes
    elif [ -z "${2-}" ] && [ "$1" != fuzz ] && grep -q '^PACELINE_TESTS:BOOL=OFF' "build/$1/CMakeCache.txt"; then
        tests=-DPACELINE_TESTS=ON
        configure=yes
    else
        configure=
    fi
    if [ -n "$configure" ]; then
        echo "paceline: configuring ($1)" >&2
        # shellcheck disable=SC2086
        cmake --preset "$1" $tests >"$log" 2>&1 || { tail -n 30 "$log" >&2; return 1; }
    fi
    # shellcheck disable=SC2086
    if ! watched "building $1" "$log" cmake --build --preset "$1" ${2:+--target $2} >&2; then
        grep -m 20 -E 'error:|FAILED:|undefined reference' "$log" >&2 || tail -n 30 "$log" >&2
        echo "paceline: the $1 build failed; all of it is in $log" >&2
        return 1
    fi
}
