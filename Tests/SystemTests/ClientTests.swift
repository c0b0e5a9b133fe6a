// vehiclectl in shells, scripts and terminals: exit status, limits and signals.

import Foundation
import Testing

extension EndToEnd {
  @Suite("The client") struct ClientTests {
    @Test(arguments: ["2>&-", "2>/dev/full"]) func `the exit status is kept when standard error cannot be written`(_ lost: String) throws {
      let rig = try Rig()
      func vehiclectl(_ arguments: String) -> Outcome {
        rig.run("/bin/sh", ["-c", "\(Rig.programs)/vehiclectl --socket \(rig.socket) \(arguments) \(lost)"])
      }
      #expect(vehiclectl("get rpm").status == 3)
      #expect(vehiclectl("--frobnicate").status == 2)
      try rig.write("[device.ev]\nkind = \"obd\"\nlink = \"tcp:127.0.0.1:1\"\n")
      let daemon = try rig.daemon()
      #expect(vehiclectl("get nosuch").status == 4)
      #expect(vehiclectl("set rpm 5").status == 2)
      #expect(vehiclectl("get rpm").status == 5)
      let failed = vehiclectl("--json get nosuch")
      #expect(failed.status == 4)
      #expect(try failed.json()["error"] as? String == "io.vehicled.NoSuchProperty")
      #expect(vehiclectl("--json get nosuch >/dev/full").status == 4)
      // The trace is not sent to the daemon, whose socket would have the number of the closed stderr.
      #expect(vehiclectl("-v get polls").output == "0\n")
      #expect(daemon.isRunning && !daemon.stderr.contains("client connection closed: protocol error"))
    }

    @Test func `a command fails when standard output cannot be written`() throws {
      let rig = try Rig()
      try rig.write("")
      let daemon = try rig.daemon()
      for lost in [">&-", ">/dev/full"] {
        let outcome = rig.run("/bin/sh", ["-c", "\(Rig.programs)/vehiclectl --socket \(rig.socket) status --json \(lost)"])
        #expect(outcome.status == 1)
        #expect(outcome.errors.hasPrefix("vehiclectl: cannot write to stdout: "))
      }
      #expect(daemon.isRunning && !daemon.stderr.contains("client connection closed: protocol error"))
    }

    @Test func `a command waits for a stopped daemon no longer than its timeout`() throws {
      let rig = try Rig()
      try rig.write("[device.ev]\nkind = \"obd\"\nlink = \"tcp:127.0.0.1:1\"\n")
      let daemon = try rig.daemon()
      daemon.signal(SIGSTOP)
      let file = "\(rig.directory)/ride.ndjson"
      for verb in [["watch", "--count", "1", "--json"], ["record", "--seconds", "1", "ev", file], ["call", "--more", "Watch"]] {
        let outcome = rig.run("\(Rig.programs)/vehiclectl", ["--socket", rig.socket, "--timeout", "1"] + verb)
        #expect(outcome.status == 6, "\(verb)")
        #expect(outcome.errors == "vehiclectl: no reply within 1 s; use --timeout to wait longer\n")
      }
      #expect(!FileManager.default.fileExists(atPath: file))
      daemon.signal(SIGCONT)
      #expect(rig.vehiclectl("record", "--seconds", "1", "ev", file).status == 0)
      #expect(FileManager.default.fileExists(atPath: file))
    }

    @Test func `the client limit of the daemon is reported`() throws {
      let rig = try Rig()
      try rig.write("")
      let daemon = try rig.daemon()
      var clients: [RawClient] = []
      #expect(
        wait {  // one more each time, because a call that has just ended may still count
          repeat { (try? RawClient(rig.socket)).map { clients.append($0) } } while clients.count < 256
          return rig.vehiclectl("status").status != 0
        })
      let outcome = rig.vehiclectl("--json", "status")
      #expect(outcome.status == 1)
      #expect(outcome.errors.contains("limit of 256 clients"))
      #expect(try outcome.json()["error"] as? String == "ConnectionClosed")
      clients = []
      #expect(wait { rig.vehiclectl("status").status == 0 })
      #expect(daemon.isRunning)
    }

    /// The new daemon knows the properties of a car only once it has detected it.
    @Test func `watch does not end the values of a car while a restarted daemon detects it`() throws {
      let rig = try Rig()
      let (daemon, _) = try rig.ev()
      #expect(wait { rig.get("rpm") != nil })
      let watch = try Program("\(Rig.programs)/vehiclectl", ["--socket", rig.socket, "watch", "--json", "ev"], in: rig.directory)
      func lines(with property: String) -> Int { watch.stdout.split(separator: "\n").count { $0.contains("\"\(property)\"") } }
      #expect(wait { lines(with: "rpm") > 0 })
      daemon.end(SIGKILL)
      let next = try rig.daemon()
      #expect(wait { watch.stderr.contains("reconnected") })
      let before = lines(with: "rpm")
      #expect(wait { lines(with: "rpm") > before })
      #expect(!watch.stdout.contains("no longer declared"))
      #expect(next.isRunning && watch.isRunning)
    }

    @Test func `watch restores the terminal before it stops and redraws when it continues`() throws {
      // A shell ignores SIGQUIT for background jobs, and programs inherit that.
      signal(SIGQUIT, SIG_DFL)
      let rig = try Rig()
      try rig.write("[device.ev]\nkind = \"obd\"\nlink = \"tcp:127.0.0.1:1\"\n")
      let daemon = try rig.daemon()
      let terminal = try Terminal()
      let client = try Program(
        "\(Rig.programs)/vehiclectl", ["--socket", rig.socket, "--color", "never", "watch"], in: rig.directory, terminal: terminal)
      let (shown, entered) = ("\u{1b}[?1049l\u{1b}[?25h", "\u{1b}[?1049h\u{1b}[?7l\u{1b}[?25l\u{1b}[?2026h\u{1b}[m\u{1b}[H\u{1b}[2J[ev")
      #expect(terminal.shows(entered))
      for _ in 0..<2 {
        client.signal(SIGTSTP)
        #expect(terminal.drawn { client.isStopped }?.hasSuffix(shown) == true)
        client.signal(SIGCONT)
        #expect(terminal.shows(entered))
      }
      // While it is stopped by SIGSTOP, other programs may write to the screen.
      client.signal(SIGSTOP)
      #expect(wait { client.isStopped })
      client.signal(SIGCONT)
      #expect(terminal.shows(entered))
      client.signal(SIGQUIT)
      #expect(terminal.drawn { !client.isRunning }?.hasSuffix(shown) == true)
      #expect(client.end() == -SIGQUIT)
      #expect(daemon.isRunning)
    }

    @Test func `signals that are ignored at the start stay ignored`() throws {
      let rig = try Rig()
      try rig.write("[device.ev]\nkind = \"obd\"\nlink = \"tcp:127.0.0.1:1\"\n")
      let daemon = try rig.daemon()
      let terminal = try Terminal()
      let script = "trap '' TSTP QUIT; exec \(Rig.programs)/vehiclectl --socket \(rig.socket) --color never watch"
      let client = try Program("/bin/sh", ["-c", script], in: rig.directory, terminal: terminal)
      #expect(terminal.shows("[ev"))
      client.signal(SIGTSTP)
      client.signal(SIGQUIT)
      usleep(500_000)
      #expect(client.isRunning && !client.isStopped)
      #expect(client.end(SIGINT) == 0)
      #expect(terminal.look().hasSuffix("\u{1b}[?25h"))
      #expect(daemon.isRunning)
    }
  }
}
