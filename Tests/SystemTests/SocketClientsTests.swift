// Runs every client of docs/socket.md, as it is printed there, against a daemon with simulated devices.

import Foundation
import Testing

extension EndToEnd {
  @Suite("Clients in docs/socket.md") struct SocketClientsTests {
    /// The code blocks of the page by the names in their `<!-- run: NAME -->` marks.
    private static func clients() throws -> [String: String] {
      let page = try String(contentsOf: Documents.root.appendingPathComponent("docs/socket.md"), encoding: .utf8)
      var clients: [String: String] = [:]
      for part in page.components(separatedBy: "<!-- run: ").dropFirst() {
        let lines = part.components(separatedBy: "\n")
        let name = try #require(lines.first?.components(separatedBy: " -->").first)
        try #require(lines.count > 2 && lines[1].hasPrefix("```"), "no code block follows the mark \(name)")
        clients[name] = lines.dropFirst(2).prefix { $0 != "```" }.joined(separator: "\n") + "\n"
      }
      return clients
    }

    /// A directory with this client, and a daemon with the devices that the page assumes.
    private func rig(with client: String) throws -> Rig {
      let rig = try Rig()
      let (_, ev) = try rig.simulator()
      try rig.write("[device.ev]\nkind = \"obd\"\nlink = \"\(ev)\"\n[device.phone]\nkind = \"health\"\n")
      try rig.write(#require(Self.clients()[client]), to: "\(rig.directory)/\(client)")
      _ = try rig.daemon()
      #expect(wait { rig.get("ev.rpm") != nil && rig.get("ev.vin") != nil })
      return rig
    }

    /// Runs a client on a terminal, so that it prints each line at once, until it has printed all of these.
    private func expect(_ command: String, in rig: Rig, prints expected: [String]) throws {
      let terminal = try Terminal()
      let environment = ["VEHICLED_SOCKET": rig.socket, "SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": "cat"]
      let program = try Program(
        "/bin/sh", ["-c", "exec \(command)"], environment: environment, in: rig.directory, terminal: terminal)
      var printed = ""
      let isComplete = wait(seconds: 20) {
        printed += terminal.look()
        return expected.allSatisfy { printed.contains($0) }
      }
      #expect(isComplete, "\(command): \(expected)\n\(printed)\n\(program.stderr)")
      // A shell is the leader of a process group, which holds the programs that it has started.
      #expect(getpgid(program.pid) == program.pid)
      kill(-program.pid, SIGKILL)
      program.end(SIGKILL)
    }

    @Test func `the tests below run every client`() throws {
      #expect(
        try Set(Self.clients().keys) == ["package.py", "bare.py", "varlinkctl.sh", "socat.sh", "watch.swift", "drive.py"])
    }

    @Test func `the package varlink gets, sets and watches`() throws {
      let rig = try rig(with: "package.py")
      try expect("\(Rig.python) package.py", in: rig, prints: ["vin {'string': '", "rpm {'int': "])
      #expect(rig.get("phone.steps") == "4321")
    }

    @Test func `the standard library of Python sets and watches`() throws {
      let rig = try rig(with: "bare.py")
      try expect("\(Rig.python) bare.py", in: rig, prints: ["steps {'int': 4321}", "rpm {'int': "])
      #expect(rig.get("phone.steps") == "4321")
    }

    @Test(.enabled(if: succeeds("varlinkctl --help | grep -q -e ' -E '"), "varlinkctl with -E comes with systemd 257 and newer"))
    func `varlinkctl gets, sets and watches`() throws {
      let rig = try rig(with: "varlinkctl.sh")
      try expect("sh varlinkctl.sh", in: rig, prints: ["interface io.vehicled", "\"readings\"", "4321", "\"snapshot\"", "\"changes\""])
    }

    @Test(.enabled(if: succeeds("command -v socat"), "socat is missing; make setup installs it"))
    func `socat gets, sets and watches`() throws {
      let rig = try rig(with: "socat.sh")
      try expect("sh socat.sh", in: rig, prints: ["\"readings\"", "{\"int\":4321}", "\"snapshot\"", "\"changes\""])
    }

    @Test func `the Swift client compiles and watches`() throws {
      let rig = try rig(with: "watch.swift")
      let compiler = try Program("/bin/sh", ["-c", "PATH=$PATH:/opt/swift/usr/bin exec swiftc watch.swift"], in: rig.directory)
      #expect(compiler.status(within: 300) == 0, "\(compiler.stderr)")
      try expect("./watch", in: rig, prints: ["rpm "])
    }

    @Test func `the lease and its setpoints drive a VESC`() throws {
      let rig = try Rig()
      let simulator = try rig.start("vehiclesim", ["vesc", "--on", "tcp:127.0.0.1:0"])
      try #require(wait { simulator.stdout.contains("\n") }, "\(simulator.stderr)")
      let link = simulator.stdout.split(separator: "\n").first.map(String.init) ?? ""
      try rig.write("[device.board]\nkind = \"longboard\"\nprotocol = \"vesc\"\nlink = \"\(link)\"\nallow-motion = true\n")
      try rig.write(#require(Self.clients()["drive.py"]), to: "\(rig.directory)/drive.py")
      let daemon = try rig.daemon()
      #expect(wait { rig.get("board.rpm") != nil })
      var client = try Program(Rig.python, ["drive.py"], environment: ["VEHICLED_SOCKET": rig.socket], in: rig.directory)
      #expect(wait { (Double(rig.get("board.motor-current") ?? "") ?? 0) > 1 }, "\(client.stderr)\n\(daemon.stderr)")
      // On a busy machine it may be too slow to keep the lease.
      for _ in 0..<5 where client.status(within: 10) == 1 && client.stderr.contains("LeaseLost") {
        client = try Program(Rig.python, ["drive.py"], environment: ["VEHICLED_SOCKET": rig.socket], in: rig.directory)
      }
      #expect(client.status(within: 10) == 0, "\(client.stderr)")
    }
  }
}

/// Whether a shell command exits with status 0.
private func succeeds(_ command: String) -> Bool {
  let process = Process()
  process.executableURL = URL(fileURLWithPath: "/bin/sh")
  process.arguments = ["-c", command]
  (process.standardOutput, process.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
  guard (try? process.run()) != nil else { return false }
  process.waitUntilExit()
  return process.terminationStatus == 0
}
