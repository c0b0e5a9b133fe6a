// The daemon at the limits of its process: descriptors, file sizes, groups, blocked system calls, and a shared state directory.

import CLinux
import Foundation
import Testing

extension EndToEnd {
  @Suite("Limits") struct LimitTests {
    private func daemon(_ rig: Rig, under command: [String], environment: [String: String] = [:]) throws -> Program {
      let arguments = [
        "\(Rig.programs)/vehicled", "--config", rig.configuration, "--socket", rig.socket, "--state", "\(rig.directory)/state",
      ]
      let program = try Program(command[0], Array(command.dropFirst()) + arguments, environment: environment, in: rig.directory)
      let answers = wait { !program.isRunning || rig.vehiclectl("version").status == 0 }
      try #require(answers && program.isRunning, "the daemon does not answer: \(program.stderr)")
      return program
    }

    /// The clock ticks for which a process has had a processor.
    private func ticks(_ program: Program) throws -> Int {
      let stat = try String(contentsOfFile: "/proc/\(program.pid)/stat", encoding: .utf8)
      let fields = try #require(stat.split(separator: ")").last).split(separator: " ")
      return (Int(fields[11]) ?? 0) + (Int(fields[12]) ?? 0)
    }

    @Test func `two daemons do not share a state directory`() throws {
      let rig = try Rig()
      try rig.write("[device.phone]\nkind = \"health\"\n")
      let first = try rig.daemon()
      let second = try rig.start(
        "vehicled", ["--config", rig.configuration, "--socket", "\(rig.directory)/other", "--state", "\(rig.directory)/state"])
      #expect(second.status(within: 5) == 1)
      #expect(second.stderr.contains("state directory \(rig.directory)/state is in use by another vehicled; stop it first"))
      #expect(!FileManager.default.fileExists(atPath: "\(rig.directory)/other"))
      // However the first daemon ends, the next one can use the directory.
      #expect(first.end(SIGKILL) == -SIGKILL)
      let next = try rig.daemon()
      #expect(rig.vehiclectl("set", "phone.steps", "10").status == 0 && next.isRunning)
    }

    @Test func `without free descriptors the daemon waits instead of spinning`() throws {
      let rig = try Rig()
      try rig.write("")
      let daemon = try daemon(rig, under: ["/usr/bin/prlimit", "--nofile=40"])
      var clients = try (0..<60).map { _ in try RawClient(rig.socket) }
      #expect(wait { daemon.stderr.contains("cannot accept a connection: too many open files; close some clients") })
      let before = try ticks(daemon)
      usleep(2_000_000)
      // Two seconds are two hundred ticks.
      #expect(try ticks(daemon) - before < 50)
      // Without this, optimised code closes them earlier.
      withExtendedLifetime(clients) {}
      clients = []
      #expect(rig.vehiclectl("version").status == 0)
      #expect(daemon.end() == 0)
    }

    /// ThreadSanitizer writes a file at the start of the program.
    @Test(.enabled(if: dlsym(nil, "__tsan_init") == nil, "ThreadSanitizer exceeds the limit itself"))
    func `a file size limit is handled like a full disk`() throws {
      let rig = try Rig()
      let (_, link) = try rig.simulator()
      try rig.write("[device.ev]\nkind = \"obd\"\nlink = \"\(link)\"\nrecord = true\n")
      let daemon = try daemon(rig, under: ["/usr/bin/prlimit", "--fsize=3000"])
      #expect(wait { daemon.stderr.contains("cannot record: cannot write ") })
      #expect(daemon.stderr.contains("file too large"), "\(daemon.stderr)")
      #expect(wait { rig.get("rpm") != nil } && daemon.end() == 0)
    }

    @Test(.enabled(if: geteuid() == 0, "only root can run clients as other users"))
    func `a user in hundreds of groups has the rights of each group`() throws {
      let rig = try Rig()
      chmod(rig.directory, 0o755)
      try rig.write("[control]\nobserve = [\"games\"]\n")
      let games = try #require(getgrnam("games")).pointee.gr_gid
      _ = try rig.daemon()
      let groups = (10_000..<10_300).map(String.init)
      for (groups, status) in [(groups + ["\(games)"], Int32(0)), (groups, 7)] {
        let client = rig.run(
          "/usr/bin/setpriv",
          [
            "--reuid=65534", "--regid=65534", "--groups", groups.joined(separator: ","), "\(Rig.programs)/vehiclectl", "--socket",
            rig.socket, "status",
          ])
        #expect(client.status == status, "\(client.errors)")
      }
    }

    /// Runs a program with the system calls blocked that the unit's filter denies to libdispatch.
    private static let filter = """
      import ctypes, os, platform, struct, sys
      refused = {"x86_64": (141, 144, 314), "aarch64": (140, 119, 274)}[platform.machine()]  # setpriority, sched_setscheduler, sched_setattr
      steps = [(0x20, 0, 0, 0)] + [(0x15, len(refused) - index, 0, number) for index, number in enumerate(refused)]
      steps += [(0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050001)]
      code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
      program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
      libc = ctypes.CDLL(None)
      assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
      os.execv(sys.argv[1], sys.argv[1:])
      """

    @Test func `under the unit's system call filter only the daemon writes log lines`() throws {
      let rig = try Rig()
      let (_, link) = try rig.simulator()
      try rig.write("[device.ev]\nkind = \"obd\"\nlink = \"\(link.replacingOccurrences(of: "127.0.0.1", with: "localhost"))\"\n")
      // libdispatch writes to the system log by itself; this redirects its messages to standard error.
      let daemon = try daemon(rig, under: [Rig.python, "-c", Self.filter], environment: ["LIBDISPATCH_LOG": "stderr"])
      #expect(wait { rig.get("rpm") != nil })
      daemon.signal(SIGHUP)
      #expect(wait { daemon.stderr.contains("configuration reloaded") })
      #expect(daemon.end() == 0)
      let ours = /\d\d:\d\d:\d\d\.\d{3} (debug|info|notice|warning|error) .+/
      for line in daemon.stderr.split(separator: "\n") { #expect(line.wholeMatch(of: ours) != nil, "\(line)") }
      #expect(daemon.stderr.contains("stopping"))
    }
  }
}
