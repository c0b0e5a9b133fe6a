// `vehiclectl watch` on a pseudo-terminal: keys, resizing, and that every end restores the terminal.

import CLinux
import Glibc
import Protocols
import Synchronization
import Testing
import Varlink

@testable import vehiclectl

@Suite struct WatchTerminalTests {
  private static let entered = "\u{1b}[?1049h\u{1b}[?7l\u{1b}[?25l"
  private static let left = "\u{1b}[?1049l\u{1b}[?25h"
  private static let schema = Contract.Schema(
    device: "ev", kind: "obd", Schema(properties: [Property("rpm", .int, unit: "rpm", group: .drive, help: "")], actions: []))

  /// A daemon with one device; `after` is what it does once it has sent the snapshot.
  private static func server(after: Answer = .nothing) throws -> SocketServer {
    try SocketServer { connection, method, _ in
      if method == Contract.Describe.name { return .send(VarlinkReply.message(Contract.Describe.Result(schemas: [schema]))) }
      let reading = Contract.Reading(device: "ev", property: "rpm", value: .int(3308), unit: "rpm", age: 0)
      let ev = Contract.Device(name: "ev", kind: "obd", state: "polling", readings: [reading])
      SocketServer.send(connection, VarlinkReply.message(Contract.Watch.Result(sequence: 0, snapshot: [ev]), continues: true))
      return after
    }
  }

  /// Runs `watch` to its end; `each` sees the output so far after each part of it.
  private func run(_ server: SocketServer, _ arguments: [String] = [], each: (pid_t, PTY, String) -> Void = { _, _, _ in }) throws -> (
    status: Int32, shown: String, isRaw: Bool
  ) {
    let pty = try PTY()
    let end = try Program.run(["watch", "--socket", server.path] + arguments, on: pty) { pid, shown in each(pid, pty, shown) }
    return (end.status, end.shown, pty.isRaw)
  }

  @Test(arguments: ["q", "\u{3}", "x\u{1b}[200~?\u{1b}[Bq", "/rpm\r q"]) func `keys end the view and the terminal is restored`(
    _ keys: String
  ) throws {
    let server = try Self.server()
    defer { server.stop() }
    var typed = false
    let end = try run(server) { _, pty, shown in
      if !typed, shown.contains("3308 rpm") {
        typed = true
        pty.type(keys)
      }
    }
    #expect(end.status == 0 && !end.isRaw)
    #expect(end.shown.hasPrefix(Self.entered) && end.shown.contains("[ev]") && end.shown.contains("q quit"))
    #expect(end.shown.contains(Self.left) && !end.shown.contains("\u{1b}[0;1m"), "no colour with NO_COLOR")
  }

  @Test(arguments: [SIGINT, SIGTERM, SIGHUP]) func `signals end the view and the terminal is restored`(_ number: Int32) throws {
    let server = try Self.server()
    defer { server.stop() }
    let end = try run(server) { pid, _, shown in if shown.contains("3308 rpm") { kill(pid, number) } }
    #expect(end.status == 0 && !end.isRaw && end.shown.contains(Self.left))
  }

  /// A daemon that restarts: each Watch call gets another speed, and the first `closing` ones are closed after that; later ones without a reply
  /// if `isGone`.
  private static func restarting(closing: Int = 1, isGone: Bool = false) throws -> SocketServer {
    let calls = Mutex(0)
    return try SocketServer { connection, method, _ in
      if method == Contract.Describe.name { return .send(VarlinkReply.message(Contract.Describe.Result(schemas: [schema]))) }
      let call = calls.withLock {
        $0 += 1
        return $0
      }
      if isGone, call > closing { return .sendAndClose([]) }
      let reading = Contract.Reading(device: "ev", property: "rpm", value: .int(1111 * call), unit: "rpm", age: 0)
      let ev = Contract.Device(name: "ev", kind: "obd", state: "polling", readings: [reading])
      let reply = VarlinkReply.message(Contract.Watch.Result(sequence: 0, snapshot: [ev]), continues: true)
      return call <= closing ? .sendAndClose(reply) : .send(reply)
    }
  }

  @Test(arguments: [[], ["--plot", "rpm"]]) func `the view reconnects after a restart of the daemon`(_ arguments: [String]) throws {
    let server = try Self.restarting()
    defer { server.stop() }
    let end = try run(server, arguments) { _, pty, shown in
      // The first letter may be that of the row before.
      let notice = shown.firstRange(of: "o connection to the daemon; reconnecting")
      if let notice, shown[notice.upperBound...].contains("2222") { pty.type("q") }
    }
    #expect(end.status == 0 && !end.isRaw, "\(end.shown)")
  }

  @Test func `lines reconnect, and --count goes on`() throws {
    let server = try Self.restarting(closing: 2)
    defer { server.stop() }
    let outcome = try Program.run(["watch", "--count", "3", "--socket", server.path, "rpm"])
    let values = outcome.stdout.split(separator: "\n").compactMap { JSON(String($0))?["value"] }
    #expect(outcome.status == 0 && values == [.int(1111), .int(2222), .int(3333)], "\(outcome)")
    let notes = ["no connection to the daemon; reconnecting", "reconnected"]
    #expect(outcome.stderr.split(separator: "\n").map(String.init) == notes + notes)
  }

  @Test func `--timeout limits the time without a connection`() throws {
    let server = try Self.restarting(isGone: true)
    defer { server.stop() }
    let outcome = try Program.run(["watch", "-q", "--timeout", "1", "--socket", server.path])
    #expect(outcome.status == 3 && outcome.stderr.hasPrefix("vehiclectl: vehicled closed the connection; see"), "\(outcome)")
  }

  @Test func `Ctrl-L draws everything again`() throws {
    let server = try Self.server()
    defer { server.stop() }
    var typed = false
    let end = try run(server) { _, pty, shown in
      if shown.ranges(of: "3308 rpm").count == 2 { pty.type("q") }
      if !typed, shown.contains("3308 rpm") {
        typed = true
        pty.type("\u{c}")
      }
    }
    #expect(end.status == 0 && end.shown.ranges(of: "\u{1b}[2J").count == 2)
  }

  @Test func `a lost connection restores the terminal before the error is printed`() throws {
    let server = try Self.restarting(isGone: true)
    defer { server.stop() }
    let end = try run(server, ["--timeout", "1"])
    #expect(end.status == 3 && !end.isRaw)
    let after = try #require(end.shown.firstRange(of: Self.left))
    #expect(end.shown[after.upperBound...].contains("vehiclectl: vehicled closed the connection"))
  }

  @Test func `a new size of the window draws everything again`() throws {
    let server = try Self.server()
    defer { server.stop() }
    var resized = false
    let end = try run(server) { pid, pty, shown in
      if !resized, shown.contains("3308 rpm") {
        resized = true
        var window = winsize(ws_row: 10, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0)
        _ = ioctl(pty.slave, UInt(TIOCSWINSZ), &window)
        kill(pid, SIGWINCH)
      }
      if shown.ranges(of: "3308 rpm").count == 2 { pty.type("q") }
    }
    #expect(end.status == 0 && end.shown.ranges(of: "\u{1b}[2J").count == 2)
    #expect(end.shown.contains(String(repeating: "─", count: 94)), "the width of the window")
  }

  @Test func `--count ends the view and prints its last frame`() throws {
    let server = try Self.server()
    defer { server.stop() }
    let end = try run(server, ["--count", "1", "ev.r*"])
    let after = try #require(end.shown.firstRange(of: Self.left))
    #expect(end.status == 0 && end.shown[after.upperBound...].contains("3308 rpm"))
  }

  @Test func `a given timeout limits the wait for the first value`() throws {
    let server = try SocketServer { connection, method, _ in
      // As a daemon without devices: an empty snapshot.
      method == Contract.Watch.name
        ? .send(VarlinkReply.message(Contract.Watch.Result(sequence: 0, snapshot: []), continues: true)) : .nothing
    }
    defer { server.stop() }
    let outcome = try Program.run(["watch", "--count", "1", "--timeout", "0.5", "--socket", server.path])
    #expect(outcome.status == 6 && outcome.stdout.isEmpty && outcome.stderr.contains("no reply within 0.5 s"), "\(outcome)")
  }

  @Test func `without a terminal readings are lines of JSON, also of a device and a pattern`() throws {
    let server = try Self.server()
    defer { server.stop() }
    for reference in [[], ["ev"], ["ev.*"], ["rpm"]] {
      let outcome = try Program.run(["watch", "--count", "1", "--socket", server.path] + reference)
      #expect(outcome.status == 0 && outcome.stdout == #"{"device":"ev","property":"rpm","value":3308,"unit":"rpm","age":0}"# + "\n")
    }
    let outcome = try Program.run(["watch", "rmp", "--socket", server.path])
    #expect(outcome.status == 4 && outcome.stderr.contains("did you mean rpm?"))
  }
}
