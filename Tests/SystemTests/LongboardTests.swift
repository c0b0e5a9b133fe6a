// Longboards end to end: Torq's board with its buzzer, and a VESC that is driven; the real programs, and every way in which a
// driver can end.

import Foundation
import Testing

extension EndToEnd {
  @Suite("Longboard") struct LongboardTests {
    /// A simulated board.
    private struct BoardRig {
      let rig: Rig
      let board: Program

      init(_ peer: String, _ arguments: String..., on place: String = "pty", options: String = "") throws {
        rig = try Rig()
        let board = try Program("\(Rig.programs)/vehiclesim", [peer, "--on", place, "-v"] + arguments, in: rig.directory)
        try #require(wait { board.stdout.contains("\n") }, "the simulator prints nothing: \(board.stderr)")
        self.board = board
        let link = board.stdout.split(separator: "\n").first.map(String.init) ?? ""
        try rig.write("[device.board]\nkind = \"longboard\"\nlink = \"\(link)\"\n\(options)\n")
      }

      /// The bytes that the board received, in order, as the simulator prints them.
      var received: [Substring] {
        board.stderr.split(separator: "\n").filter { $0.contains(": < ") }.compactMap { $0.split(separator: " ").last }
      }

      func number(_ property: String) -> Double? { rig.get("board.\(property)").flatMap(Double.init) }
    }

    @Test(arguments: ["as-built", "documented"]) func `Torq's board works in both dialects`(_ dialect: String) throws {
      let setup = try BoardRig("longboard", "--dialect", dialect)
      let daemon = try setup.rig.daemon()
      #expect(wait { setup.number("speed") ?? 0 > 5 && setup.number("battery") != nil })
      #expect(setup.rig.get("board.dialect") == dialect)
      #expect(setup.rig.vehiclectl("get", "board.mode").errors.contains("not supported by ELComm"))
      #expect(setup.rig.vehiclectl("set", "name", "Torq one").status == 0 && setup.rig.get("name") == "Torq one")
      #expect(setup.rig.vehiclectl("set", "name", "a name of more letters").status == 2)
      #expect(daemon.end() == 0)
    }

    @Test func `every start without stored state detects the as-built dialect`() throws {
      let setup = try BoardRig("longboard")
      for start in 0..<10 {
        let daemon = try setup.rig.daemon()
        #expect(wait { setup.rig.get("board.dialect") != nil })
        #expect(setup.rig.get("board.dialect") == "as-built", "start \(start)")
        #expect(setup.rig.vehiclectl("do", "buzz", "100ms").status == 0)
        if start.isMultiple(of: 2) { daemon.end(SIGKILL) } else { daemon.end() }
        try FileManager.default.removeItem(atPath: "\(setup.rig.directory)/state")
        usleep(useconds_t(start) * 20_000)
      }
      #expect(setup.received.contains("7"))
    }

    @Test func `the buzzer sounds and is switched off in every case`() throws {
      let setup = try BoardRig("longboard", "--dialect", "as-built", options: "dialect = \"as-built\"\nbuzzer-limit = 4")
      let first = try setup.rig.daemon()
      let buzzer = { setup.rig.get("board.buzzer") }
      #expect(wait { buzzer() == "off" })
      #expect(setup.received.first == "-")
      #expect(setup.rig.vehiclectl("do", "buzz", "500ms").status == 0)
      #expect(wait { setup.received.last != "7" && setup.received.contains("7") })
      #expect(setup.rig.vehiclectl("set", "buzzer", "on").status == 0 && buzzer() == "on")
      #expect(wait { buzzer() == "off" })
      let hold = try setup.rig.start("vehiclectl", ["--socket", setup.rig.socket, "do", "buzz", "--hold"])
      #expect(wait { buzzer() == "on" })
      usleep(4_500_000)
      #expect(buzzer() == "on")
      hold.end(SIGKILL)
      #expect(wait { buzzer() == "off" })
      // After a daemon that is killed while the buzzer sounds, the next one first switches it off. The total distance is stored.
      #expect(setup.rig.vehiclectl("set", "buzzer", "on").status == 0)
      let total = try #require(setup.number("total-distance"))
      let before = setup.received.count
      first.end(SIGKILL)
      // Its guardian switches it off, long before buzzer-limit is over.
      #expect(wait(seconds: 3) { setup.received.dropFirst(before).contains("-") })
      let second = try setup.rig.daemon()
      #expect(wait { buzzer() == "off" })
      #expect(setup.received.dropFirst(before).first { $0 != "7" } == "-")
      #expect(wait { setup.number("total-distance") ?? 0 >= total })
      // Disconnecting and stopping also switch it off.
      #expect(setup.rig.vehiclectl("set", "buzzer", "on").status == 0)
      #expect(setup.rig.vehiclectl("disconnect", "board").status == 0)
      #expect(wait { setup.received.last == "-" })
      #expect(setup.rig.vehiclectl("connect", "board").status == 0)
      #expect(wait { buzzer() == "off" })
      #expect(setup.rig.vehiclectl("set", "buzzer", "on").status == 0)
      #expect(second.end() == 0)
      #expect(wait { setup.received.last == "-" })
    }

    @Test func `Torq's board works over BLE`() throws {
      let rig = try Rig()
      let (bus, environment) = try rig.bus()
      let board = try rig.start("vehiclesim", ["longboard", "--on", "ble:unix:path=\(rig.directory)/bus"])
      try #require(wait { board.stdout.contains("\n") })
      try rig.write("[device.board]\nkind = \"longboard\"\nlink = \"ble:HMSoft\"\n")
      let daemon = try rig.daemon(environment: environment)
      #expect(wait { rig.get("board.speed") != nil }, "\(rig.vehiclectl("status", "board").output)")
      #expect(rig.vehiclectl("status", "board").output.contains("profile FFE0/FFE1/FFE1"))
      #expect(rig.vehiclectl("do", "buzz", "200ms").status == 0)
      withExtendedLifetime((bus, daemon)) {}
    }

    // MARK: Driving

    private func driving(_ setup: BoardRig, deadline: Int = 1500) throws -> Program {
      try Program(
        "\(Rig.programs)/vehiclectl", ["--socket", setup.rig.socket, "drive", "board", "--deadline", "\(deadline)"],
        in: setup.rig.directory, input: "")
    }

    @Test(arguments: [
      "hangs up", "dies", "stalls", "falls silent", "loses the link", "loses the daemon", "finds it killed", "finds it frozen",
    ])
    func `a driven board stops when the driver`(_ end: String) throws {
      let setup = try BoardRig("vesc", options: "protocol = \"vesc\"\nallow-motion = true")
      let daemon = try setup.rig.daemon()
      #expect(wait { setup.number("erpm") != nil })
      // Long enough to check the status meanwhile on a busy machine.
      let driver = try driving(setup, deadline: 5000)
      let target = { setup.number("target-current") }
      #expect(
        driver.feed(#"{"target-current": 6.5}"#) { target() == 6.5 && setup.number("motor-current") ?? 0 > 3 }, "\(driver.stderr)")
      let status = setup.rig.vehiclectl("status", "board").output
      #expect(driver.feed(#"{"target-current": 6.5}"#) { true })
      #expect(status.contains("driving, held by") && status.contains("(pid \(driver.pid))"))
      let busy = setup.rig.vehiclectl("drive", "board", input: "")
      #expect(busy.status == 1 && busy.errors.contains("is held by") && busy.errors.contains("(pid \(driver.pid))"), "\(busy.errors)")
      #expect(driver.feed(#"{"brake-current": 2}"#) { setup.number("brake-current") == 2 }, "\(driver.stderr)")
      switch end {
      case "hangs up": driver.closeInput()
      case "dies": driver.end(SIGKILL)
      case "stalls": driver.signal(SIGSTOP)
      case "falls silent": break
      case "loses the link": #expect(setup.rig.vehiclectl("disconnect", "board").status == 0)
      case "loses the daemon": daemon.end()
      case "finds it killed": daemon.end(SIGKILL)
      default: daemon.signal(SIGSTOP)
      }
      let frame = { (text: Substring) in text.contains(#"\x02\x05\x06\x00\x00\x00\x00"#) }
      // The guardian sends the frame if the daemon cannot.
      #expect(wait { setup.received.contains(where: frame) })
      if end == "finds it killed" { #expect(daemon.stderr.contains("the daemon has ended: its guardian stops the driven vehicles")) }
      if end == "finds it frozen" {
        #expect(daemon.stderr.contains("the daemon is frozen: its guardian stops the driven vehicle"))
        daemon.signal(SIGCONT)
      }
      driver.signal(SIGCONT)
      #expect(wait { !driver.isRunning })
      switch end {
      case "hangs up": #expect(driver.status(within: 0) == 0)
      case "falls silent", "stalls":
        #expect(
          driver.status(within: 0) == 1 && driver.stderr.contains("no setpoint for 5000 ms"), "\(driver.stderr)")
      case "loses the link": #expect(driver.status(within: 0) == 1 && driver.stderr.contains("disconnected on request"))
      default: break
      }
      if daemon.isRunning, end != "loses the link" { #expect(wait { target() == nil && setup.number("erpm") != nil }) }
    }

    /// `vehiclectl drive` on a terminal, with a key that repeats until the motor turns. Every end must release the motor and the lease.
    @Test(arguments: ["quits", "is suspended", "is terminated", "releases the key", "loses the link"])
    func `a board driven by keys stops when the driver`(_ end: String) throws {
      let setup = try BoardRig("vesc", options: "protocol = \"vesc\"\nallow-motion = true")
      let daemon = try setup.rig.daemon()
      #expect(wait { setup.number("erpm") != nil })
      let terminal = try Terminal()
      // The deadline is long, so that a busy machine does not end the drive.
      let driver = try Program(
        "/bin/sh", ["-c", "exec \(Rig.programs)/vehiclectl --socket \(setup.rig.socket) drive board --deadline 5000 --force <&1"],
        in: setup.rig.directory, terminal: terminal)
      #expect(terminal.shows("lease held"), "\(driver.stderr)")
      terminal.type("0")
      let throttle = { (least: Double) in
        terminal.drawn {
          terminal.type("w")
          usleep(40_000)
          return setup.received.contains { $0.contains(#"\x02\x05\x06\x00\x00\x0"#) || $0.contains(#"\x02\x05\x06\x00\x00\x1"#) }
            && setup.number("target-current") ?? 0 > least
        }
      }
      #expect(throttle(1) != nil, "\(driver.stderr)")
      switch end {
      case "quits": terminal.type("q")
      case "is suspended": driver.signal(SIGTSTP)
      case "is terminated": driver.signal(SIGTERM)
      case "loses the link": #expect(setup.rig.vehiclectl("disconnect", "board").status == 0)
      default: break
      }
      let isZero = { setup.received.last { $0.contains(#"\x02\x05\x06"#) }?.contains(#"\x02\x05\x06\x00\x00\x00\x00"#) == true }
      #expect(terminal.drawn(until: isZero) != nil, "\(setup.received.suffix(5))")
      switch end {
      case "releases the key":
        #expect(setup.rig.vehiclectl("status", "board").output.contains("driving, held by"))
        terminal.type("q")
        #expect(terminal.drawn { !driver.isRunning } != nil && driver.status(within: 0) == 0)
      case "is suspended":
        #expect(wait { !setup.rig.vehiclectl("status", "board").output.contains("held by") })
        driver.end(SIGKILL)
      case "loses the link":
        #expect(terminal.drawn { !driver.isRunning } != nil)
        #expect(driver.status(within: 0) == 1 && driver.stderr.contains("disconnected on request"), "\(driver.stderr)")
      default: #expect(terminal.drawn { !driver.isRunning } != nil && driver.status(within: 0) == 0, "\(driver.stderr)")
      }
      #expect(daemon.isRunning && !setup.rig.vehiclectl("status", "board").output.contains("held by"))
    }

    @Test func `a guardian that dies is replaced, and a guardian ends with its daemon`() throws {
      let setup = try BoardRig("vesc", options: "protocol = \"vesc\"\nallow-motion = true")
      let daemon = try setup.rig.daemon()
      #expect(wait { setup.number("erpm") != nil }, "\(daemon.stderr)")
      #expect(guardians(of: daemon).isEmpty, "no client drives, so no guardian is needed")
      let driver = try driving(setup, deadline: 5000)
      #expect(driver.feed(#"{"target-current": 3}"#) { setup.number("motor-current") ?? 0 > 1 && !guardians(of: daemon).isEmpty })
      let first = try #require(guardians(of: daemon).first)
      usleep(1_100_000)
      let guarding = descriptors(of: first)
      kill(first, SIGKILL)
      #expect(driver.feed(#"{"target-current": 3}"#) { guardians(of: daemon).first.map { $0 != first } ?? false })
      let second = try #require(guardians(of: daemon).first)
      // It runs before it has the last-will frame and the descriptor of the link.
      #expect(wait { descriptors(of: second) == guarding } && driver.isRunning)
      // What ends the daemon's unit does not end the guardian before it has spoken.
      for number in [SIGTERM, SIGINT, SIGHUP, SIGABRT] { kill(second, number) }
      daemon.end(SIGKILL)
      #expect(wait { setup.received.contains { $0.contains(#"\x02\x05\x06\x00\x00\x00\x00"#) } })
      #expect(wait { kill(second, 0) != 0 })
    }

    @Test func `a frozen guardian is replaced`() throws {
      let setup = try BoardRig("vesc", options: "protocol = \"vesc\"\nallow-motion = true")
      let daemon = try setup.rig.daemon()
      #expect(wait { setup.number("erpm") != nil })
      let driver = try driving(setup, deadline: 5000)
      #expect(driver.feed(#"{"target-current": 3}"#) { setup.number("motor-current") ?? 0 > 1 && !guardians(of: daemon).isEmpty })
      let first = try #require(guardians(of: daemon).first)
      usleep(1_100_000)
      kill(first, SIGSTOP)
      #expect(driver.feed(#"{"target-current": 3}"#) { guardians(of: daemon).first.map { $0 != first } ?? false })
      #expect(driver.isRunning && daemon.stderr.contains("it does not respond"))
    }

    /// The processes that this daemon started.
    private func guardians(of daemon: Program) -> [Int32] {
      let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(daemon.pid)/task")) ?? []
      let children = threads.map { (try? String(contentsOfFile: "/proc/\(daemon.pid)/task/\($0)/children", encoding: .utf8)) ?? "" }
      return children.flatMap { $0.split(separator: " ") }.compactMap { Int32($0) }
    }

    private func descriptors(of process: Int32) -> Int? {
      try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/fd").count
    }

    @Test func `queued lines do not extend the lease`() throws {
      let setup = try BoardRig("vesc", options: "protocol = \"vesc\"\nallow-motion = true")
      let daemon = try setup.rig.daemon()
      #expect(wait { setup.number("erpm") != nil })
      let driver = try driving(setup)
      #expect(driver.feed(#"{"target-current": 4}"#) { setup.number("target-current") == 4 })
      driver.signal(SIGSTOP)
      driver.writeInput(String(repeating: #"{"target-current": 5}"# + "\n", count: 1500))
      driver.signal(SIGCONT)
      #expect(wait { !driver.isRunning })
      // 5 A is sent only as often as the lease allows without another line, not 1500 times.
      #expect(setup.received.count { $0.contains(#"\x02\x05\x06\x00\x00\x13"#) } < 100)
      #expect(driver.stderr.contains("no setpoint for 1500 ms"), "\(driver.stderr)")
      #expect(daemon.isRunning)
    }

    @Test func `input lines of a driver are checked against the schema`() throws {
      let setup = try BoardRig("vesc", options: "protocol = \"vesc\"\nallow-motion = true")
      let daemon = try setup.rig.daemon()
      #expect(wait { setup.number("erpm") != nil })
      for (line, words) in [
        ("fast", "line 1: not a JSON object"), (#"{"speed": 3}"#, "has no motion property \"speed\""),
        (#"{"target-current": 300}"#, "target-current: 300 is outside -10 to 10 A"),
      ] {
        let outcome = setup.rig.vehiclectl("drive", "board", "--deadline", "5000", input: line + "\n")
        #expect(outcome.status == 2 && outcome.errors.contains(words), "\(outcome.errors)")
      }
      try setup.rig.write("[device.board]\nkind = \"longboard\"\nprotocol = \"vesc\"\nlink = \"tcp:127.0.0.1:9\"\n")
      #expect(setup.rig.vehiclectl("reload").status == 0)
      let still = setup.rig.vehiclectl("drive", "board", input: "")
      #expect(still.status == 1 && still.errors.contains("allow-motion = true"), "\(still.errors)")
      #expect(daemon.isRunning)
    }
  }
}
