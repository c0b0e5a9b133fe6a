// The Trivia toy end to end: the real daemon with a simulated web server and a simulated toy, controlled by vehiclectl.

import Foundation
import Testing

extension EndToEnd {
  @Suite("Toy") struct ToyTests {
    private static let secret = "hunter22"

    private func server(_ rig: Rig, _ arguments: String..., on place: String = "tcp:127.0.0.1:0") throws -> (Program, url: String) {
      let program = try rig.start(
        "vehiclesim", ["trivia", "--on", place, "--database", "\(rig.directory)/trivia.db", "-v"] + arguments)
      try #require(wait { program.stdout.contains("\n") }, "the server prints nothing: \(program.stderr)")
      return (program, program.stdout.split(separator: "\n").first.map(String.init) ?? "")
    }

    private func configure(_ rig: Rig, _ url: String, port: Int = 0, more: String = "") throws {
      try rig.write(
        "[device.toy]\nkind = \"toy\"\nserver = \"\(url)\"\ninsecure-http = true\nproxy = \"\"\nlisten = \"127.0.0.1:\(port == 0 ? 8080 : port)\"\n"
          + "toy-network = \"127.0.0.0/8\"\n\(more)")
    }

    /// The anonymous memory of a program, in kB.
    private func anonymousMemory(of program: Program) throws -> Int {
      let status = try String(contentsOfFile: "/proc/\(program.process.processIdentifier)/status", encoding: .utf8)
      let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("RssAnon:") })
      return try #require(line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) })
    }

    private func toy(_ rig: Rig, _ arguments: String..., input: String? = nil) -> Outcome {
      rig.run("\(Rig.programs)/vehiclectl", ["--socket", rig.socket, "toy"] + arguments, input: input)
    }

    @Test func `a user logs in, lists facts and votes, and a server outage is bridged`() throws {
      let rig = try Rig()
      let (first, url) = try server(rig)
      try configure(rig, url)
      let daemon = try rig.daemon(arguments: "--log-level", "trace")
      #expect(toy(rig, "whoami").errors.contains("toy login"))
      let made = toy(rig, "register", "Ada", "ada@example.org", input: "\(Self.secret)\n")
      #expect(made.status == 0 && made.output.contains("registered and logged in as user 1"), "\(made)")
      #expect(toy(rig, "login", "ada@example.org", input: "wrong\n").errors.contains("wrong e-mail or password"))

      // A toy is thrown every second: it fetches facts and reports those that it has played.
      let thrown = try rig.start(
        "vehiclesim",
        [
          "toy", "--joined", "--user", "1", "--throw", "1", "--instant", "--phone", "tcp:127.0.0.1:1", "--server",
          "tcp:" + url.dropFirst(7),
        ])
      #expect(wait(seconds: 30) { toy(rig, "history").output.split(separator: "\n").count > 3 }, "\(thrown.stderr)")
      thrown.end()
      #expect(toy(rig, "fact", "1").status == 0 && toy(rig, "fact", "9999").errors.contains("the toy has not played fact 9999"))
      #expect(toy(rig, "vote", "1", "up").output.contains("fact 1: up (1 up, 0 down)"))
      #expect(toy(rig, "vote", "1", "up").output.contains("already voted that way"))

      // Without a server votes are stored and facts are listed with their age; the next daemon sends the pending votes.
      first.end()
      #expect(toy(rig, "vote", "2", "down").output.contains("stored, and sent when the server responds"))
      let old = toy(rig, "history", "--json")
      #expect(old.status == 0 && old.output.contains("as of ") && old.output.contains("cannot reach"), "\(old)")
      #expect(rig.get("toy.pending-votes") == "1" && daemon.end() == 0)
      let (_, _) = try server(rig, on: "tcp:" + url.dropFirst(7))
      let next = try rig.daemon()
      #expect(wait { rig.get("toy.pending-votes") == "0" })
      #expect(toy(rig, "history", "--json").output.contains(#""down":1,"vote":"down""#))
      #expect(toy(rig, "whoami").output.contains("ada@example.org"))
      #expect(toy(rig, "logout").status == 0 && toy(rig, "history").errors.contains("toy login"))
      #expect(next.end() == 0)

      // The password is in no file and no log line.
      let state = rig.run("/bin/grep", ["-r", Self.secret, rig.directory])
      #expect(state.status == 1 && !(daemon.stderr + first.stderr).contains(Self.secret), "\(state.output)")
    }

    @Test func `the toy receives its Wi-Fi credentials, and a setup that times out closes the port`() throws {
      let rig = try Rig()
      let (_, url) = try server(rig)
      let port = Int(try freePort())
      try configure(rig, url, port: port)
      let daemon = try rig.daemon(arguments: "--log-level", "trace")
      #expect(toy(rig, "register", "Ada", "ada@example.org", input: "\(Self.secret)\n").status == 0)
      let simulated = try rig.start(
        "vehiclesim",
        [
          "toy", "--phone", "tcp:127.0.0.1:\(port)", "--server", "tcp:" + url.dropFirst(7), "--network", "HomeNet", "--network-password",
          "pa:ss word", "--card", "\(rig.directory)/card", "--instant", "-v",
        ])
      let setup = toy(rig, "wifi", "HomeNet", input: "pa:ss word\n")
      #expect(setup.status == 0 && (setup.output + setup.errors).contains("plays for user 1"), "\(setup)")
      #expect(wait { simulated.stderr.contains("green") }, "\(simulated.stderr)")
      #expect(rig.get("toy.wifi-setup") == "sent")
      #expect(!daemon.stderr.contains("pa:ss word"))
      #expect(toy(rig, "wifi", "a:b", input: "12345678\n").status == 2)
      let lone = toy(rig, "wifi", "HomeNet", "--timeout", "2", input: "pa:ss word\n")
      #expect(lone.status == 6, "\(lone)")
      #expect(wait { rig.get("toy.wifi-setup") == "idle" }, "a setup that times out closes the port")
    }

    @Test func `every kind of server failure has a message`() throws {
      for (fault, words) in [
        ("error", "failed (500)"), ("html", "a web page"), ("redirect", "which is not supported"), ("garbage", "is not HTTP"),
        ("huge", "more than the maximum of 1 MiB"),
      ] {
        let rig = try Rig()
        let (_, url) = try server(rig, "--fault", fault)
        try configure(rig, url)
        let daemon = try rig.daemon()
        let login = toy(rig, "login", "ada@example.org", input: "x\n")
        #expect(login.status == 1 && login.errors.contains(words), "\(fault): \(login)")
        #expect(daemon.end() == 0)
      }
    }

    @Test(.enabled(if: !isSanitized, "a sanitizer has its own memory, and takes too long for 40 MB"))
    func `the memory for a huge response is returned`() throws {
      let rig = try Rig()
      let (server, url) = try server(rig)
      try configure(rig, url)
      let daemon = try rig.daemon()
      #expect(toy(rig, "register", "Ada", "ada@example.org", input: "\(Self.secret)\n").status == 0)
      let before = try anonymousMemory(of: daemon)
      #expect(server.end() == 0)
      // Each list of facts is followed by 10 MB of spaces.
      _ = try self.server(rig, "--fault", "huge", on: "tcp:" + url.dropFirst(7))
      for _ in 0..<4 { #expect(toy(rig, "history").status == 0) }
      let after = try anonymousMemory(of: daemon)
      #expect(after < before + 4_000, "\(before), then \(after)")
    }

    @Test func `plain HTTP requires insecure-http`() throws {
      let rig = try Rig()
      try rig.write("[device.toy]\nkind = \"toy\"\nserver = \"http://127.0.0.1:1\"\n")
      let check = rig.run("\(Rig.programs)/vehicled", ["--config", rig.configuration, "--check-config"])
      #expect(check.status != 0 && (check.output + check.errors).contains("insecure-http = true"), "\(check)")
    }
  }
}
