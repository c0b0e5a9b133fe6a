// The program on a pseudo-terminal: its display, and that it releases the lease before it is stopped.

import CLinux
import Glibc
import Protocols
import Testing
import Varlink

@testable import vehiclectl

@Suite struct TerminalDriveTests {
  @Test func `Ctrl-Z stops the car and releases the lease, resuming requests a new one`() throws {
    let car = DrivenCar()
    let pty = try PTY()
    let server = try SocketServer { connection, method, parameters in
      car.answer(connection, method, parameters) { call, car in
        // The signal does not stop a session leader: it continues at once.
        if car.calls.count == 1 { pty.type("\u{1a}") }
        if call.action == "tilt", car.leases == 2, car.tilts == 1 { pty.type("q") }
        return DrivenCar.answered
      }
    }
    defer { server.stop() }
    let (status, shown) = try Program.run(["drive", "rover", "--socket", server.path], on: pty)
    #expect(status == 0, "\(shown)")
    #expect(shown.contains("rover") && shown.contains("space stop") && !shown.contains("\u{1b}[2m"))
    // The terminal may echo the last key after it is restored.
    let frames = shown.split(separator: "\u{1b}[?25l")
    #expect(frames.count > 1 && frames.last?.contains("\u{1b}[?25h") == true, "the cursor is hidden: \(shown.suffix(40).debugDescription)")
    #expect(car.leases == 2 && car.calls.count { $0 == .init(action: "stop", hasLease: false) } == 2 && !pty.isRaw)
  }

  /// Runs `drive board` on a terminal against a daemon that describes this schema and rejects everything else.
  private func refusal(_ schema: Schema?, _ arguments: [String] = [], environment: [String: String] = [:]) throws -> (Int32, String) {
    let pty = try PTY()
    let schemas = schema.map { [Contract.Schema(device: "board", kind: "x", $0)] } ?? []
    let server = try SocketServer { method, _ in
      switch method {
      case Contract.Describe.name: .send(VarlinkReply.message(Contract.Describe.Result(schemas: schemas)))
      case Contract.Drive.name: .send(VarlinkReply.message(.busy(device: "board", holder: "eve")))
      default: .nothing
      }
    }
    defer { server.stop() }
    return try Program.run(["drive", "board", "--socket", server.path] + arguments, on: pty, environment: environment)
  }

  @Test func `a device that cannot be driven by hand is rejected before the lease is requested`() throws {
    let still = try refusal(nil)
    #expect(still.0 == 2 && still.1.contains("allow-motion = true"), "\(still)")
    let other = try refusal(Schema(properties: [Property("heading", .float, range: 0...360, access: .motion, help: "")]))
    #expect(other.0 == 2 && other.1.contains("PROGRAM | vehiclectl drive board"), "\(other)")
  }

  @Test func `keys over ssh do not drive a throttle, unless forced`() throws {
    for variable in ["SSH_CONNECTION", "SSH_TTY"] {
      let refused = try refusal(DrivenBoard.schema, environment: [variable: "x"])
      #expect(refused.0 == 2 && refused.1.contains("over ssh") && refused.1.contains("--force"), "\(refused)")
      let forced = try refusal(DrivenBoard.schema, ["--force"], environment: [variable: "x"])
      #expect(forced.0 == 1 && forced.1.contains("eve"), "\(forced)")
    }
  }

  @Test func `a terminal that cannot show the screen is rejected`() throws {
    let pty = try PTY()
    let (status, shown) = try Program.run(["drive", "board", "--socket", "/nonexistent"], on: pty, environment: ["TERM": "dumb"])
    #expect(status == 2 && shown.contains("cannot drive board with keys") && shown.contains("--input"), "\(shown)")
  }

  @Test(arguments: [([], "°C"), (["--units", "imperial"], "°F")])
  func `the screen shows values, the setpoint that was sent and how fast a release acts`(_ arguments: [String], _ unit: String) throws {
    let board = DrivenBoard()
    let pty = try PTY()
    let server = try SocketServer { connection, method, parameters in
      board.answer(connection, method, parameters) { _, board in
        if board.values.count == 30 { pty.type("q") }
        return DrivenBoard.answered
      }
    }
    defer { server.stop() }
    let (status, shown) = try Program.run(
      ["drive", "board", "--socket", server.path] + arguments, on: pty, environment: ["SSH_CONNECTION": "", "SSH_TTY": ""])
    #expect(status == 0 && !pty.isRaw, "\(shown)")
    for words in [
      "lease held", "throttle", "brake", "20 %", "motor-current", "mosfet-temperature", "zero", "q quit", "\u{1b}[?1004h", unit,
    ] {
      #expect(shown.contains(words), "\(words): \(shown.debugDescription)")
    }
  }
}
