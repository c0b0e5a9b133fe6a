// Runs every client of docs/socket.md, as it is printed there, against a daemon with simulated devices.

import Foundation
import Testing

extension WholeHouse {
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
    private func house(with client: String) throws -> House {
      let house = try House()
      let (_, ev) = try house.simulator()
      try house.write("[device.ev]\nkind = \"obd\"\nlink = \"\(ev)\"\n[device.phone]\nkind = \"health\"\n")
      try house.write(#require(Self.clients()[client]), to: "\(house.directory)/\(client)")
      _ = try house.daemon()
      #expect(wait { house.get("ev.rpm") != nil && house.get("ev.vin") != nil })
      return house
    }

    /// Runs a client on a terminal, so that it prints each line at once, until it has printed all of these.
    private func expect(_ command: String, in house: House, prints expected: [String]) throws {
      let terminal = try Terminal()
      let environment = ["VEHICLED_SOCKET": house.socket, "SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": "cat"]
      let program = try Program(
        "/bin/sh", ["-c", "exec \(command)"], environment: environment, in: house.directory, terminal: terminal)
      var printed = ""
      let isComplete = wait(seconds: 20) {
        printed += terminal.look()
        return expected.allSatisfy { printed.contains($0) }
      }
      #expect(isComplete, "\(command): \(expected)\n\(printed)\n\(program.complaints)")
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
      let house = try house(with: "package.py")
      try expect("\(House.python) package.py", in: house, prints: ["vin {'string': '", "rpm {'int': "])
      #expect(house.get("phone.steps") == "4321")
    }

    @Test func `the standard library of Python sets and watches`() throws {
      let house = try house(with: "bare.py")
      try expect("\(House.python) bare.py", in: house, prints: ["steps {'int': 4321}", "rpm {'int': "])
      #expect(house.get("phone.steps") == "4321")
    }

    @Test(.enabled(if: succeeds("varlinkctl --help | grep -q -e ' -E '"), "varlinkctl with -E comes with systemd 257 and newer"))
    func `varlinkctl gets, sets and watches`() throws {
      let house = try house(with: "varlinkctl.sh")
      try expect("sh varlinkctl.sh", in: house, prints: ["interface io.vehicled", "\"readings\"", "4321", "\"snapshot\"", "\"changes\""])
    }

    @Test(.enabled(if: succeeds("command -v socat"), "socat is missing; make setup installs it"))
    func `socat gets, sets and watches`() throws {
      let house = try house(with: "socat.sh")
      try expect("sh socat.sh", in: house, prints: ["\"readings\"", "{\"int\":4321}", "\"snapshot\"", "\"changes\""])
    }

    @Test func `the Swift client compiles and watches`() throws {
      let house = try house(with: "watch.swift")
      let compiler = try Program("/bin/sh", ["-c", "PATH=$PATH:/opt/swift/usr/bin exec swiftc watch.swift"], in: house.directory)
      #expect(compiler.status(within: 300) == 0, "\(compiler.complaints)")
      try expect("./watch", in: house, prints: ["rpm "])
    }

    @Test func `the lease and its set-points drive a VESC`() throws {
      let house = try House()
      let simulator = try house.start("vehiclesim", ["vesc", "--on", "tcp:127.0.0.1:0"])
      try #require(wait { simulator.printed.contains("\n") }, "\(simulator.complaints)")
      let link = simulator.printed.split(separator: "\n").first.map(String.init) ?? ""
      try house.write("[device.board]\nkind = \"longboard\"\nprotocol = \"vesc\"\nlink = \"\(link)\"\nallow-motion = true\n")
      try house.write(#require(Self.clients()["drive.py"]), to: "\(house.directory)/drive.py")
      let daemon = try house.daemon()
      #expect(wait { house.get("board.rpm") != nil })
      let client = try Program(House.python, ["drive.py"], environment: ["VEHICLED_SOCKET": house.socket], in: house.directory)
      #expect(wait { (Double(house.get("board.motor-current") ?? "") ?? 0) > 1 }, "\(client.complaints)\n\(daemon.complaints)")
      #expect(client.status(within: 10) == 0, "\(client.complaints)")
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
