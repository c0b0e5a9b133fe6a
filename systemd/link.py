#!/usr/bin/env python3
"""Links the programs as they are installed: link.py BUILD OUTPUT PROGRAM...

BUILD is the directory of `swift build -c release --static-swift-stdlib`, whose object files are linked again: those of the Swift runtime
and of the modules in each program into OUTPUT/lib/vehicled/libvehicled.so, and the rest into OUTPUT/bin/PROGRAM. The programs thus share
one copy of the runtime. The library exports only the symbols that a program uses, and its own calls do not pass through its PLT.
"""
import json
import pathlib
import shlex
import subprocess
import sys

# Modules of the daemon that stay in the programs: those that need a system library, which otherwise every program would load, and those
# that use such modules.
OWN = {"vehicled", "ServiceRuntime", "ConfigurationFiles", "DBus", "CToml", "CCurl", "CSQLiteDynamic"}
SYSTEM_LIBRARIES = ("systemd", "dbus-1", "evdev", "deflate", "sqlite3", "mosquitto")


def objects(build, program):
    """The object files that SwiftPM links."""
    return shlex.split((build / f"{program}.product" / "Objects.LinkFileList").read_text())


def module(build, file):
    return pathlib.Path(file).relative_to(build).parts[0].removesuffix(".build")


def symbols(selection, files):
    lines = subprocess.run(["nm", "-j", selection, *files], check=True, capture_output=True, text=True).stdout.splitlines()
    return {line for line in lines if line and not line.endswith(":")}


def response_file(path, arguments):
    path.write_text("".join(f"{shlex.quote(str(argument))}\n" for argument in arguments))
    return f"@{path}"


def toolchain():
    """The programs of the toolchain, the static libraries of the runtime, and the object file that registers a program's Swift metadata."""
    about = json.loads(subprocess.run(["swiftc", "-print-target-info", "-static-stdlib"], check=True, capture_output=True, text=True).stdout)
    resources = pathlib.Path(about["paths"]["runtimeResourcePath"])
    libraries = resources / about["target"]["platform"]
    return resources.parents[1] / "bin", libraries, libraries / about["target"]["arch"] / "swiftrt.o"


def main(build, output, *programs):
    build, output = pathlib.Path(build).resolve(), pathlib.Path(output).resolve()
    library, work = output / "lib/vehicled/libvehicled.so", output / "work"
    for folder in (output / "bin", library.parent, work):
        folder.mkdir(parents=True, exist_ok=True)
    every = {program: objects(build, program) for program in programs}
    shared = [file for file in every["vehicled"] if module(build, file) not in OWN]
    own = {program: [file for file in files if file not in set(shared)] for program, files in every.items()}
    tools, libraries, registration = toolchain()

    # The libraries of the runtime that the compiler has recorded in the object files.
    subprocess.run([tools / "swift-autolink-extract", *shared, "-o", work / "autolink"], check=True)
    used = shlex.split((work / "autolink").read_text()) + ["-ldispatch", "-lBlocksRuntime"]
    archives = [archive for name in dict.fromkeys(used) if (archive := libraries / f"lib{name.removeprefix('-l')}.a").is_file()]

    needed = symbols("--undefined-only", {registration, *(file for files in own.values() for file in files)})
    exported = sorted(needed & symbols("--defined-only", [*shared, *archives]))
    (work / "exports").write_text("{ global:\n" + "".join(f'"{symbol}";\n' for symbol in exported) + "local: *; };\n")

    # Relative relocations take an eighth of the space and need glibc 2.36, which is that of Debian 12.
    link = [tools / "clang++", "-fuse-ld=lld", "-Wl,--gc-sections,-z,nostart-stop-gc,--build-id,--hash-style=gnu,-O2,-z,pack-relative-relocs,-z,defs,-z,now"]
    wanted = response_file(work / "wanted", (f"-Wl,-u,{symbol}" for symbol in exported))
    subprocess.run([*link, "-shared", f"-Wl,-soname,{library.name},-Bsymbolic,--version-script={work / 'exports'}", "-o", library, registration,
                    response_file(work / "shared", shared), wanted, *archives, "-lm"], check=True)
    for program, files in own.items():
        entry = program.replace("-", "_") + "_main"
        subprocess.run([*link, "-pie", f"-Wl,--defsym,main={entry}", "-o", output / "bin" / program, registration, response_file(work / program, files),
                        library, "-Wl,-rpath,$ORIGIN/../lib/vehicled,--as-needed", *(f"-l{name}" for name in SYSTEM_LIBRARIES), "-lm"], check=True)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__.splitlines()[0])
    main(*sys.argv[1:])
