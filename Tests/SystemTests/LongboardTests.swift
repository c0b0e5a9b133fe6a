// Longboards end to end: Torq's board with its buzzer, and a VESC that is driven; the real programs, and every way in which a
// driver can end.

import Foundation
import Testing

extension WholeHouse {
  @Suite("Longboard") struct LongboardTests {
    /// A simulated board.
    private struct Ride {
      let house: House
      let board: Program

      init(_ peer: String, _ arguments: String..., on place: String = "pty", options: String = "") throws {
        house = try House()
        let board = try Program("\(House.programs)/vehiclesim", [peer, "--on", place, "-v"] + arguments, in: house.directory)
        try #require(wait { board.printed.contains("\n") }, "the simulator prints nothing: \(board.complaints)")
        self.board = board
        let link = board.printed.split(separator: "\n").first.map(String.init) ?? ""
        try house.write("[device.board]\nkind = \"longboard\"\nlink = \"\(link)\"\n\(options)\n")
      }

      /// The bytes that the board received, in order, as the simulator prints them.
      var received: [Substring] {
        board.complaints.split(separator: "\n").filter { $0.contains(": < ") }.compactMap { $0.split(separator: " ").last }
      }

      func number(_ property: String) -> Double? { house.get("board.\(property)").flatMap(Double.init) }
    }

    @Test(arguments: ["as-built", "documented"]) func `Torq's board works in both dialects`(_ dialect: String) throws {
      let ride = try Ride("longboard", "--dialect", dialect)
      let daemon = try ride.house.daemon()
      #expect(wait { ride.number("speed") ?? 0 > 5 && ride.number("battery") != nil })
      #expect(ride.house.get("board.dialect") == dialect)
      #expect(ride.house.vehiclectl("get", "board.mode").errors.contains("not supported by ELComm"))
      #expect(ride.house.vehiclectl("set", "name", "Torq one").status == 0 && ride.house.get("name") == "Torq one")
      #expect(ride.house.vehiclectl("set", "name", "a name of more letters").status == 2)
      #expect(daemon.end() == 0)
    }

    @Test func `every start without stored state detects the as-built dialect`() throws {
      let ride = try Ride("longboard")
      for start in 0..<10 {
        let daemon = try ride.house.daemon()
        #expect(wait { ride.house.get("board.dialect") != nil })
        #expect(ride.house.get("board.dialect") == "as-built", "start \(start)")
        #expect(ride.house.vehiclectl("do", "buzz", "100ms").status == 0)
        if start.isMultiple(of: 2) { daemon.end(SIGKILL) } else { daemon.end() }
        try FileManager.default.removeItem(atPath: "\(ride.house.directory)/state")
        usleep(useconds_t(start) * 20_000)
      }
      #expect(ride.received.contains("7"))
    }

    @Test func `the buzzer sounds and is switched off in every case`() throws {
      let ride = try Ride("longboard", "--dialect", "as-built", options: "dialect = \"as-built\"\nbuzzer-limit = 4")
      let first = try ride.house.daemon()
      let buzzer = { ride.house.get("board.buzzer") }
      #expect(wait { buzzer() == "off" })
      #expect(ride.received.first == "-")
      #expect(ride.house.vehiclectl("do", "buzz", "500ms").status == 0)
      #expect(wait { ride.received.last != "7" && ride.received.contains("7") })
      #expect(ride.house.vehiclectl("set", "buzzer", "on").status == 0 && buzzer() == "on")
      #expect(wait { buzzer() == "off" })
      let hold = try ride.house.start("vehiclectl", ["--socket", ride.house.socket, "do", "buzz", "--hold"])
      #expect(wait { buzzer() == "on" })
      usleep(4_500_000)
      #expect(buzzer() == "on")
      hold.end(SIGKILL)
      #expect(wait { buzzer() == "off" })
      // After a daemon that is killed while the buzzer sounds, the next one first switches it off. The total distance is stored.
      #expect(ride.house.vehiclectl("set", "buzzer", "on").status == 0)
      let total = try #require(ride.number("total-distance"))
      let before = ride.received.count
      first.end(SIGKILL)
      // Its guardian switches it off, long before buzzer-limit is over.
      #expect(wait(seconds: 3) { ride.received.dropFirst(before).contains("-") })
      let second = try ride.house.daemon()
      #expect(wait { buzzer() == "off" })
      #expect(ride.received.dropFirst(before).first { $0 != "7" } == "-")
      #expect(wait { ride.number("total-distance") ?? 0 >= total })
      // Disconnecting and stopping also switch it off.
      #expect(ride.house.vehiclectl("set", "buzzer", "on").status == 0)
      #expect(ride.house.vehiclectl("disconnect", "board").status == 0)
      #expect(wait { ride.received.last == "-" })
      #expect(ride.house.vehiclectl("connect", "board").status == 0)
      #expect(wait { buzzer() == "off" })
      #expect(ride.house.vehiclectl("set", "buzzer", "on").status == 0)
      #expect(second.end() == 0)
      #expect(wait { ride.received.last == "-" })
    }

    @Test func `Torq's board works over BLE`() throws {
      let house = try House()
      let (bus, environment) = try house.bus()
      let board = try house.start("vehiclesim", ["longboard", "--on", "ble:unix:path=\(house.directory)/bus"])
      try #require(wait { board.printed.contains("\n") })
      try house.write("[device.board]\nkind = \"longboard\"\nlink = \"ble:HMSoft\"\n")
      let daemon = try house.daemon(environment: environment)
      #expect(wait { house.get("board.speed") != nil }, "\(house.vehiclectl("status", "board").output)")
      #expect(house.vehiclectl("status", "board").output.contains("profile FFE0/FFE1/FFE1"))
      #expect(house.vehiclectl("do", "buzz", "200ms").status == 0)
      withExtendedLifetime((bus, daemon)) {}
    }

    // MARK: Driving

    private func driving(_ ride: Ride, deadline: Int = 1500) throws -> Program {
      try Program(
        "\(House.programs)/vehiclectl", ["--socket", ride.house.socket, "drive", "board", "--deadline", "\(deadline)"],
        in: ride.house.directory, input: "")
    }

    @Test(arguments: [
      "hangs up", "dies", "stalls", "falls silent", "loses the link", "loses the daemon", "finds it killed", "finds it frozen",
    ])
    func `a driven board stops when the driver`(_ end: String) throws {
      let ride = try Ride("vesc", options: "protocol = \"vesc\"\nallow-motion = true")
      let daemon = try ride.house.daemon()
      #expect(wait { ride.number("erpm") != nil })
      // Long enough to check the status meanwhile on a busy machine.
      let driver = try driving(ride, deadline: 5000)
      let target = { ride.number("target-current") }
      #expect(
        driver.feed(#"{"target-current": 6.5}"#) { target() == 6.5 && ride.number("motor-current") ?? 0 > 3 }, "\(driver.complaints)")
      let status = ride.house.vehiclectl("status", "board").output
      #expect(driver.feed(#"{"target-current": 6.5}"#) { true })
      #expect(status.contains("driving, held by") && status.contains("(pid \(driver.pid))"))
      let busy = ride.house.vehiclectl("drive", "board", input: "")
      #expect(busy.status == 1 && busy.errors.contains("is held by") && busy.errors.contains("(pid \(driver.pid))"), "\(busy.errors)")
      #expect(driver.feed(#"{"brake-current": 2}"#) { ride.number("brake-current") == 2 }, "\(driver.complaints)")
      switch end {
      case "hangs up": driver.closeInput()
      case "dies": driver.end(SIGKILL)
      case "stalls": driver.signal(SIGSTOP)
      case "falls silent": break
      case "loses the link": #expect(ride.house.vehiclectl("disconnect", "board").status == 0)
      case "loses the daemon": daemon.end()
      case "finds it killed": daemon.end(SIGKILL)
      default: daemon.signal(SIGSTOP)
      }
      let frame = { (text: Substring) in text.contains(#"\x02\x05\x06\x00\x00\x00\x00"#) }
      // The guardian sends the frame if the daemon cannot.
      #expect(wait { ride.received.contains(where: frame) })
      if end == "finds it killed" { #expect(daemon.complaints.contains("the daemon has ended: its guardian stops the driven vehicles")) }
      if end == "finds it frozen" {
        #expect(daemon.complaints.contains("the daemon is frozen: its guardian stops the driven vehicle"))
        daemon.signal(SIGCONT)
      }
      driver.signal(SIGCONT)
      #expect(wait { !driver.isRunning })
      switch end {
      case "hangs up": #expect(driver.status(within: 0) == 0)
      case "falls silent", "stalls":
        #expect(
          driver.status(within: 0) == 1 && driver.complaints.contains("no set-point for 5000 ms"), "\(driver.complaints)")
      case "loses the link": #expect(driver.status(within: 0) == 1 && driver.complaints.contains("disconnected on request"))
      default: break
      }
      if daemon.isRunning, end != "loses the link" { #expect(wait { target() == nil && ride.number("erpm") != nil }) }
    }

    @Test func `a guardian that dies is replaced, and a guardian ends with its daemon`() throws {
      let ride = try Ride("vesc", options: "protocol = \"vesc\"\nallow-motion = true")
      let daemon = try ride.house.daemon()
      #expect(wait { ride.number("erpm") != nil }, "\(daemon.complaints)")
      #expect(guardians(of: daemon).isEmpty, "no client drives, so no guardian is needed")
      let driver = try driving(ride, deadline: 5000)
      #expect(driver.feed(#"{"target-current": 3}"#) { ride.number("motor-current") ?? 0 > 1 })
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
      #expect(wait { ride.received.contains { $0.contains(#"\x02\x05\x06\x00\x00\x00\x00"#) } })
      #expect(wait { kill(second, 0) != 0 })
    }

    @Test func `a frozen guardian is replaced`() throws {
      let ride = try Ride("vesc", options: "protocol = \"vesc\"\nallow-motion = true")
      let daemon = try ride.house.daemon()
      #expect(wait { ride.number("erpm") != nil })
      let driver = try driving(ride, deadline: 5000)
      #expect(driver.feed(#"{"target-current": 3}"#) { ride.number("motor-current") ?? 0 > 1 })
      let first = try #require(guardians(of: daemon).first)
      usleep(1_100_000)
      kill(first, SIGSTOP)
      #expect(driver.feed(#"{"target-current": 3}"#) { guardians(of: daemon).first.map { $0 != first } ?? false })
      #expect(driver.isRunning && daemon.complaints.contains("it does not respond"))
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

    @Test func linesThatWaitedDriveNobody() throws {
      let ride = try Ride("vesc", options: "protocol = \"vesc\"\nallow-motion = true")
      let daemon = try ride.house.daemon()
      #expect(wait { ride.number("erpm") != nil })
      let driver = try driving(ride)
      #expect(driver.feed(#"{"target-current": 4}"#) { ride.number("target-current") == 4 })
      driver.signal(SIGSTOP)
      driver.say(String(repeating: #"{"target-current": 5}"# + "\n", count: 1500))
      driver.signal(SIGCONT)
      #expect(wait { !driver.isRunning })
      // 5 A is sent only as often as the lease allows without another line, not 1500 times.
      #expect(ride.received.count { $0.contains(#"\x02\x05\x06\x00\x00\x13"#) } < 100)
      #expect(driver.complaints.contains("no set-point for 1500 ms"), "\(driver.complaints)")
      #expect(daemon.isRunning)
    }

    @Test func `input lines of a driver are checked against the schema`() throws {
      let ride = try Ride("vesc", options: "protocol = \"vesc\"\nallow-motion = true")
      let daemon = try ride.house.daemon()
      #expect(wait { ride.number("erpm") != nil })
      for (line, words) in [
        ("fast", "line 1: not a JSON object"), (#"{"speed": 3}"#, "has no motion property \"speed\""),
        (#"{"target-current": 300}"#, "target-current: 300 is outside -10 to 10 A"),
      ] {
        let outcome = ride.house.vehiclectl("drive", "board", input: line + "\n")
        #expect(outcome.status == 2 && outcome.errors.contains(words), "\(outcome.errors)")
      }
      try ride.house.write("[device.board]\nkind = \"longboard\"\nprotocol = \"vesc\"\nlink = \"tcp:127.0.0.1:9\"\n")
      #expect(ride.house.vehiclectl("reload").status == 0)
      let still = ride.house.vehiclectl("drive", "board", input: "")
      #expect(still.status == 1 && still.errors.contains("allow-motion = true"), "\(still.errors)")
      #expect(daemon.isRunning)
    }
  }
}
