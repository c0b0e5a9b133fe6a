// A longboard with a VESC end to end: vehiclesim simulates the VESC; the daemon and vehiclectl are real.

import Foundation
import Testing

extension EndToEnd {
  @Suite("VESC") struct VESCTests {
    /// A simulated board.
    private struct Board {
      let rig: Rig
      let vesc: Program
      let link: String

      init(_ arguments: String..., on place: String = "tcp:127.0.0.1:0", options: String = "") throws {
        rig = try Rig()
        let vesc = try Program("\(Rig.programs)/vehiclesim", ["vesc", "--on", place] + arguments, in: rig.directory)
        try #require(wait { vesc.stdout.contains("\n") }, "the simulator prints nothing: \(vesc.stderr)")
        self.vesc = vesc
        link = vesc.stdout.split(separator: "\n").first.map(String.init) ?? ""
        try rig.write("[device.board]\nkind = \"longboard\"\nprotocol = \"vesc\"\nlink = \"\(link)\"\n\(options)\n")
      }
    }

    @Test func `a mode is set and survives a daemon that is killed`() throws {
      let board = try Board(options: "[device.board.mode.eco]\ncurrent = 50\nspeed = 15")
      let rig = board.rig
      let first = try rig.daemon()
      #expect(wait { rig.get("speed") != nil && rig.get("battery") != nil })
      #expect(rig.get("firmware") == "6.00" && rig.get("mode") == nil)
      #expect(rig.vehiclectl("set", "mode", "eco").status == 0)
      #expect(rig.get("mode") == "eco")
      #expect(rig.vehiclectl("set", "mode", "turbo").status == 2)
      first.end(SIGKILL)
      let second = try rig.daemon()
      #expect(wait { rig.get("mode") == "eco" })
      #expect(rig.vehiclectl("set", "mode", "full").status == 0 && rig.get("mode") == "full")
      #expect(second.isRunning)
    }

    @Test func `a recording is replayed`() throws {
      let rig = try Rig()
      let file = URL(fileURLWithPath: #filePath).appendingPathComponent("../../Recordings/longboard/vesc-6.00.ndjson").standardized.path
      try rig.write("[device.board]\nkind = \"longboard\"\nprotocol = \"vesc\"\nlink = \"replay:\(file)\"\n")
      let daemon = try rig.daemon()
      #expect(wait { Int(rig.get("polls") ?? "") ?? 0 > 30 && rig.get("speed") != nil && rig.get("vescs") == "2" })
      #expect(rig.get("firmware") == "6.00" && rig.get("hardware") == "60" && rig.get("bad-frames") == "0")
      #expect(wait { rig.vehiclectl("status").output.contains("the recording has ended") })
      #expect(daemon.isRunning)
    }

    @Test func `ping-can lists the controllers on the CAN bus`() throws {
      let board = try Board()
      let daemon = try board.rig.daemon()
      #expect(wait { board.rig.get("speed") != nil })
      let outcome = board.rig.vehiclectl("do", "ping-can")
      #expect(outcome.status == 0 && outcome.lines.last == "2", "\(outcome.output) \(outcome.errors)")
      #expect(daemon.isRunning)
    }

    @Test func `an old VESC on a noisy serial line is polled, and a missing response is reported`() throws {
      let board = try Board(
        "--firmware", "3.40", "--fault", "noise:25", "--fault", "wrong-crc:40", on: "pty",
        options: "pole-pairs = 7\ngear-ratio = 2.25\nwheel-diameter = 85")
      let rig = board.rig
      let daemon = try rig.daemon()
      #expect(wait { rig.get("speed") != nil && rig.get("rpm") != nil && rig.get("total-distance") != nil })
      #expect(rig.get("firmware") == "3.40")
      let outcome = rig.vehiclectl("set", "mode", "full")
      #expect(outcome.status == 1 && outcome.errors.contains("5.02 or newer"), "\(outcome.errors)")
      board.vesc.signal(SIGSTOP)
      #expect(wait { rig.vehiclectl("status").output.contains("check that its app is set to UART") })
      board.vesc.signal(SIGCONT)
      #expect(wait { rig.get("speed") != nil })
      #expect(daemon.isRunning)
    }

    @Test func `a motion property requires a lease`() throws {
      let board = try Board(options: "allow-motion = true")
      let daemon = try board.rig.daemon()
      #expect(wait { board.rig.get("speed") != nil })
      let outcome = board.rig.vehiclectl("set", "target-current", "3")
      #expect(outcome.status != 0 && outcome.errors.contains("lease"), "\(outcome.errors)")
      #expect(daemon.isRunning)
    }
  }
}
