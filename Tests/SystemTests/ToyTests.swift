// The Trivia toy end to end: the real daemon with a simulated web server and a simulated toy, controlled by vehiclectl.

import Foundation
import Testing

extension WholeHouse {
  @Suite("Toy") struct ToyTests {
    private static let secret = "hunter22"

    private func server(_ house: House, _ arguments: String..., on place: String = "tcp:127.0.0.1:0") throws -> (Program, url: String) {
      let program = try house.start(
        "vehiclesim", ["trivia", "--on", place, "--database", "\(house.directory)/trivia.db", "-v"] + arguments)
      try #require(wait { program.printed.contains("\n") }, "the server prints nothing: \(program.complaints)")
      return (program, program.printed.split(separator: "\n").first.map(String.init) ?? "")
    }

    private func configure(_ house: House, _ url: String, port: Int = 0, more: String = "") throws {
      try house.write(
        "[device.toy]\nkind = \"toy\"\nserver = \"\(url)\"\ninsecure-http = true\nproxy = \"\"\nlisten = \"127.0.0.1:\(port == 0 ? 8080 : port)\"\n"
          + "toy-network = \"127.0.0.0/8\"\n\(more)")
    }

    private func toy(_ house: House, _ arguments: String..., input: String? = nil) -> Outcome {
      house.run("\(House.programs)/vehiclectl", ["--socket", house.socket, "toy"] + arguments, input: input)
    }

    @Test func `a user logs in, lists facts and votes, and a server outage is bridged`() throws {
      let house = try House()
      let (first, url) = try server(house)
      try configure(house, url)
      let daemon = try house.daemon(arguments: "--log-level", "trace")
      #expect(toy(house, "whoami").errors.contains("toy login"))
      let made = toy(house, "register", "Ada", "ada@example.org", input: "\(Self.secret)\n")
      #expect(made.status == 0 && made.output.contains("registered and logged in as user 1"), "\(made)")
      #expect(toy(house, "login", "ada@example.org", input: "wrong\n").errors.contains("wrong e-mail or password"))

      // A toy is thrown every second: it fetches facts and reports those that it has played.
      let thrown = try house.start(
        "vehiclesim",
        [
          "toy", "--joined", "--user", "1", "--throw", "1", "--instant", "--phone", "tcp:127.0.0.1:1", "--server",
          "tcp:" + url.dropFirst(7),
        ])
      #expect(wait(seconds: 30) { toy(house, "history").output.split(separator: "\n").count > 3 }, "\(thrown.complaints)")
      thrown.end()
      #expect(toy(house, "fact", "1").status == 0 && toy(house, "fact", "9999").errors.contains("the toy has not played fact 9999"))
      #expect(toy(house, "vote", "1", "up").output.contains("fact 1: up (1 up, 0 down)"))
      #expect(toy(house, "vote", "1", "up").output.contains("already voted that way"))

      // Without a server votes are stored and facts are listed with their age; the next daemon sends the pending votes.
      first.end()
      #expect(toy(house, "vote", "2", "down").output.contains("stored, and sent when the server responds"))
      let old = toy(house, "history", "--json")
      #expect(old.status == 0 && old.output.contains("as of ") && old.output.contains("cannot reach"), "\(old)")
      #expect(house.get("toy.pending-votes") == "1" && daemon.end() == 0)
      let (_, _) = try server(house, on: "tcp:" + url.dropFirst(7))
      let next = try house.daemon()
      #expect(wait { house.get("toy.pending-votes") == "0" })
      #expect(toy(house, "history", "--json").output.contains(#""down":1,"vote":"down""#))
      #expect(toy(house, "whoami").output.contains("ada@example.org"))
      #expect(toy(house, "logout").status == 0 && toy(house, "history").errors.contains("toy login"))
      #expect(next.end() == 0)

      // The password is in no file and no log line.
      let state = house.run("/bin/grep", ["-r", Self.secret, house.directory])
      #expect(state.status == 1 && !(daemon.complaints + first.complaints).contains(Self.secret), "\(state.output)")
    }

    @Test func `the toy receives its Wi-Fi credentials, and a setup that times out closes the port`() throws {
      let house = try House()
      let (_, url) = try server(house)
      let port = 20_000 + Int(getpid() % 20_000)
      try configure(house, url, port: port)
      let daemon = try house.daemon(arguments: "--log-level", "trace")
      #expect(toy(house, "register", "Ada", "ada@example.org", input: "\(Self.secret)\n").status == 0)
      let simulated = try house.start(
        "vehiclesim",
        [
          "toy", "--phone", "tcp:127.0.0.1:\(port)", "--server", "tcp:" + url.dropFirst(7), "--network", "HomeNet", "--network-password",
          "pa:ss word", "--card", "\(house.directory)/card", "--instant", "-v",
        ])
      let setup = toy(house, "wifi", "HomeNet", input: "pa:ss word\n")
      #expect(setup.status == 0 && (setup.output + setup.errors).contains("plays for user 1"), "\(setup)")
      #expect(wait { simulated.complaints.contains("green") }, "\(simulated.complaints)")
      #expect(house.get("toy.wifi-setup") == "sent")
      #expect(!daemon.complaints.contains("pa:ss word"))
      #expect(toy(house, "wifi", "a:b", input: "12345678\n").status == 2)
      let lone = toy(house, "wifi", "HomeNet", "--timeout", "2", input: "pa:ss word\n")
      #expect(lone.status == 6, "\(lone)")
      #expect(wait { house.get("toy.wifi-setup") == "idle" }, "a setup that times out closes the port")
    }

    @Test func `every kind of server failure has a message`() throws {
      for (fault, words) in [
        ("error", "failed (500)"), ("html", "a web page"), ("redirect", "which is not supported"), ("garbage", "is not HTTP"),
        ("huge", "more than the maximum of 1 MiB"),
      ] {
        let house = try House()
        let (_, url) = try server(house, "--fault", fault)
        try configure(house, url)
        let daemon = try house.daemon()
        let login = toy(house, "login", "ada@example.org", input: "x\n")
        #expect(login.status == 1 && login.errors.contains(words), "\(fault): \(login)")
        #expect(daemon.end() == 0)
      }
    }

    @Test func `plain HTTP requires insecure-http`() throws {
      let house = try House()
      try house.write("[device.toy]\nkind = \"toy\"\nserver = \"http://127.0.0.1:1\"\n")
      let check = house.run("\(House.programs)/vehicled", ["--config", house.configuration, "--check-config"])
      #expect(check.status != 0 && (check.output + check.errors).contains("insecure-http = true"), "\(check)")
    }
  }
}
