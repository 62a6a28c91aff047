#!/usr/bin/env python3
"""The installed package: a project outside the tree finds it, links it and runs, by CMake and by pkg-config.

    package_test.py SOURCE_DIR BUILD_DIR WORK_DIR static|shared

Installs the static libraries of BUILD_DIR, or builds shared ones beside it first; into a folder of WORK_DIR, which it then moves:
nothing may depend on where it was built for.
"""
import os
import shutil
import subprocess
import sys
from pathlib import Path

source, build, work, kind = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
consumer = source / "tests/package/consumer"


def run(*command, **options):
    print("$", *command, flush=True)
    return subprocess.run([str(word) for word in command], check=True, **options)


def cmake(source_dir, build_dir, *definitions):
    run("cmake", "-G", "Ninja", "-S", source_dir, "-B", build_dir, "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache", *definitions)
    run("cmake", "--build", build_dir, "--parallel", os.cpu_count())


shutil.rmtree(work, ignore_errors=True)
work.mkdir(parents=True)
if kind == "shared":
    build = build.parent / "shared"
    cmake(source, build, "-DSYLAR_TESTS=OFF", "-DSYLAR_EXAMPLES=OFF", "-DBUILD_SHARED_LIBS=ON")
run("cmake", "--install", build, "--prefix", work / "first", stdout=subprocess.DEVNULL)
prefix = (work / "first").rename(work / "prefix")

environment = dict(os.environ, LD_LIBRARY_PATH=str(prefix / "lib"), PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"))
cmake(consumer, work / "by_cmake", f"-DCMAKE_PREFIX_PATH={prefix}")
run(work / "by_cmake/consumer", env=environment)

flags = run("pkg-config", "--cflags", "--libs", "sylar", env=environment, capture_output=True, text=True).stdout.split()
(work / "by_pkg_config").mkdir()
run("g++", "-O2", "-Wall", "-Wextra", "-Werror", consumer / "consumer.cc", "-o", work / "by_pkg_config/consumer", *flags)
run(work / "by_pkg_config/consumer", env=environment)

linked = run("ldd", work / "by_pkg_config/consumer", env=environment, capture_output=True, text=True).stdout
if ("libsylar" in linked) != (kind == "shared"):
    sys.exit(f"the libraries are {kind}, and the program needs:\n{linked}")
