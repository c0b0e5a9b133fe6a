// A longboard with a VESC end to end: vehiclesim simulates the VESC; the daemon and vehiclectl are real.

import Foundation
import Testing

extension WholeHouse {
  @Suite("VESC") struct VESCTests {
    /// A simulated board.
    private struct Board {
      let house: House
      let vesc: Program
      let link: String

      init(_ arguments: String..., on place: String = "tcp:127.0.0.1:0", options: String = "") throws {
        house = try House()
        let vesc = try Program("\(House.programs)/vehiclesim", ["vesc", "--on", place] + arguments, in: house.directory)
        try #require(wait { vesc.printed.contains("\n") }, "the simulator prints nothing: \(vesc.complaints)")
        self.vesc = vesc
        link = vesc.printed.split(separator: "\n").first.map(String.init) ?? ""
        try house.write("[device.board]\nkind = \"longboard\"\nprotocol = \"vesc\"\nlink = \"\(link)\"\n\(options)\n")
      }
    }

    @Test func `a mode is set and survives a daemon that is killed`() throws {
      let board = try Board(options: "[device.board.mode.eco]\ncurrent = 50\nspeed = 15")
      let house = board.house
      let first = try house.daemon()
      #expect(wait { house.get("speed") != nil && house.get("battery") != nil })
      #expect(house.get("firmware") == "6.00" && house.get("mode") == nil)
      #expect(house.vehiclectl("set", "mode", "eco").status == 0)
      #expect(house.get("mode") == "eco")
      #expect(house.vehiclectl("set", "mode", "turbo").status == 2)
      first.end(SIGKILL)
      let second = try house.daemon()
      #expect(wait { house.get("mode") == "eco" })
      #expect(house.vehiclectl("set", "mode", "full").status == 0 && house.get("mode") == "full")
      #expect(second.isRunning)
    }

    @Test func `a recording is replayed`() throws {
      let house = try House()
      let file = URL(fileURLWithPath: #filePath).appendingPathComponent("../../Recordings/longboard/vesc-6.00.ndjson").standardized.path
      try house.write("[device.board]\nkind = \"longboard\"\nprotocol = \"vesc\"\nlink = \"replay:\(file)\"\n")
      let daemon = try house.daemon()
      #expect(wait { Int(house.get("polls") ?? "") ?? 0 > 30 && house.get("speed") != nil && house.get("vescs") == "2" })
      #expect(house.get("firmware") == "6.00" && house.get("hardware") == "60" && house.get("bad-frames") == "0")
      #expect(wait { house.vehiclectl("status").output.contains("the recording has ended") })
      #expect(daemon.isRunning)
    }

    @Test func `ping-can lists the controllers on the CAN bus`() throws {
      let board = try Board()
      let daemon = try board.house.daemon()
      #expect(wait { board.house.get("speed") != nil })
      let outcome = board.house.vehiclectl("do", "ping-can")
      #expect(outcome.status == 0 && outcome.lines.last == "2", "\(outcome.output) \(outcome.errors)")
      #expect(daemon.isRunning)
    }

    @Test func `an old VESC on a noisy serial line is polled, and a missing response is reported`() throws {
      let board = try Board(
        "--firmware", "3.40", "--fault", "noise:25", "--fault", "wrong-crc:40", on: "pty",
        options: "pole-pairs = 7\ngear-ratio = 2.25\nwheel-diameter = 85")
      let house = board.house
      let daemon = try house.daemon()
      #expect(wait { house.get("speed") != nil && house.get("rpm") != nil && house.get("total-distance") != nil })
      #expect(house.get("firmware") == "3.40")
      let outcome = house.vehiclectl("set", "mode", "full")
      #expect(outcome.status == 1 && outcome.errors.contains("5.02 or newer"), "\(outcome.errors)")
      board.vesc.signal(SIGSTOP)
      #expect(wait { house.vehiclectl("status").output.contains("check that its app is set to UART") })
      board.vesc.signal(SIGCONT)
      #expect(wait { house.get("speed") != nil })
      #expect(daemon.isRunning)
    }

    @Test func `a motion property requires a lease`() throws {
      let board = try Board(options: "allow-motion = true")
      let daemon = try board.house.daemon()
      #expect(wait { board.house.get("speed") != nil })
      let outcome = board.house.vehiclectl("set", "target-current", "3")
      #expect(outcome.status != 0 && outcome.errors.contains("lease"), "\(outcome.errors)")
      #expect(daemon.isRunning)
    }
  }
}
