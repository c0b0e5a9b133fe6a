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
    let pid = try Program.start(["drive", "rover", "--socket", server.path], on: pty)
    var shown = ""
    var status: Int32 = 0
    var looks = 0
    while waitpid(pid, &status, WNOHANG) == 0 {
      shown += pty.shown()
      usleep(1_000)
      looks += 1
      if looks == 30_000 { kill(pid, SIGKILL) }  // it would never end
    }
    shown += pty.shown()
    #expect(status == 0, "\(shown)")
    #expect(shown.contains("rover  ") && shown.contains("space stop") && !shown.contains("\u{1b}[2m"))
    // The terminal may echo the last key after it is restored.
    let frames = shown.split(separator: "\u{1b}[?25l")
    #expect(frames.count > 1 && frames.last?.contains("\u{1b}[?25h") == true, "the cursor is hidden: \(shown.suffix(40).debugDescription)")
    #expect(car.leases == 2 && car.calls.count { $0 == .init(action: "stop", hasLease: false) } == 2 && !pty.isRaw)
  }

  @Test func `a device without tilt is rejected on a terminal before the lease is requested`() throws {
    let pty = try PTY()
    let server = try SocketServer { method, _ in
      method == Contract.Describe.name ? .send(VarlinkReply.message(Contract.Describe.Result(schemas: []))) : .sendAndClose([])
    }
    defer { server.stop() }
    let pid = try Program.start(["drive", "board", "--socket", server.path], on: pty)
    var (shown, status, looks) = ("", Int32(0), 0)
    while waitpid(pid, &status, WNOHANG) == 0 {
      shown += pty.shown()
      usleep(1_000)
      looks += 1
      if looks == 30_000 { kill(pid, SIGKILL) }  // it would never end
    }
    shown += pty.shown()
    #expect(status >> 8 == 2 && shown.contains("PROGRAM | vehiclectl drive board"), "\(status) \(shown)")
  }
}
