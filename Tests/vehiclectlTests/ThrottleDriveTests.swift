// Driving a board by hand: its setpoints, and that every end is zero throttle.

import CLinux
import Glibc
import Protocols
import Synchronization
import Testing
import Varlink

@testable import vehiclectl

@Suite struct ThrottleDriveTests {
  private static let zero = DrivenBoard.SetPoint(property: "target-current", value: 0)

  /// Drives to the end and returns the error.
  private func drive(
    _ board: DrivenBoard, _ pty: PTY?, keyboard: (any Keyboard)? = nil, stick: (any GameController)? = nil,
    then: @escaping @Sendable (DrivenBoard.SetPoint, DrivenBoard) -> Answer
  ) throws -> Failure? {
    let server = try SocketServer { connection, method, parameters in board.answer(connection, method, parameters, then: then) }
    defer { server.stop() }
    let common = try CommonOptions.parse(["--socket", server.path, "-q", "--timeout", "20"])
    let schema = DriveSchema(device: "board", DrivenBoard.described)
    var drive = try ManualDrive(
      common, Output(common), schema, try #require(schema.control), described: DrivenBoard.described, deadline: 300,
      inputs: DriveInputs(terminal: pty.flatMap { RawTerminal($0.slave) }, stick: stick, keyboard: keyboard), screen: nil)
    do { try drive.run() } catch { return error as? Failure }
    return nil
  }

  @Test func `a repeating key opens the throttle, and its end closes it; q ends with zero`() throws {
    let board = DrivenBoard()
    let pty = try PTY()
    let end = try drive(board, pty) { _, board in
      let values = board.values
      if board.peak < 0.5, values.count.isMultiple(of: 3) {
        pty.type("w")  // at most 20 a second
      } else if board.peak >= 0.5, values.last == Self.zero {
        pty.type("q")
      }
      return DrivenBoard.answered
    }
    #expect(end == nil && board.values.last == Self.zero && !pty.isRaw)
    #expect(board.values.first == Self.zero && board.values.allSatisfy { (0...2).contains($0.value) && $0.property == "target-current" })
  }

  @Test func `text that is pasted drives nothing`() throws {
    let board = DrivenBoard()
    let pty = try PTY()
    _ = try drive(board, pty) { _, board in
      if board.values.count == 3 { pty.type("wwwwwwwwww") }
      if board.values.count == 20 { pty.type("q") }
      return DrivenBoard.answered
    }
    #expect(board.values.count >= 20 && board.values.allSatisfy { $0 == Self.zero })
  }

  @Test(arguments: [" ", "\u{1b}[O", "s"]) func `space, a lost focus and the brake close an open throttle`(_ key: String) throws {
    let board = DrivenBoard()
    let pty = try PTY()
    let ends = try Self.pipe()
    defer { for end in ends { close(end) } }
    let phase = Mutex(0)
    let end = try drive(board, pty, keyboard: LetterKeyboard(ends[0])) { setPoint, board in
      phase.withLock {
        switch $0 {
        case 0 where board.values.count == 2:
          _ = Output.write(all: [UInt8(ascii: "F")], to: ends[1])  // stays down to the end
          $0 = 1
        case 1: pty.type("w"); $0 = 2
        case 2 where setPoint.value > 0.3: pty.type(key); $0 = 3
        case 3 where setPoint == Self.zero || setPoint.property == "brake-current" && setPoint.value > 0: pty.type("q"); $0 = 4
        default: break
        }
      }
      return DrivenBoard.answered
    }
    #expect(end == nil && phase.withLock { $0 } == 4 && board.values.last == Self.zero && board.peak > 0.3)
    #expect(board.values.contains { $0.property == "brake-current" } == (key == "s"))
  }

  @Test func `a keyboard that is unplugged, and one that reports the release, end in zero`() throws {
    for unplugs in [true, false] {
      let board = DrivenBoard()
      let pty = try PTY()
      let ends = try Self.pipe()
      let phase = Mutex(0)
      let end = try drive(board, pty, keyboard: LetterKeyboard(ends[0])) { setPoint, board in
        phase.withLock {
          switch $0 {
          case 0 where board.values.count == 2:
            _ = Output.write(all: [UInt8(ascii: "F")], to: ends[1])
            $0 = 1
          case 1: pty.type("w"); $0 = 2
          // One event of the terminal is enough: the keyboard holds it.
          case 2 where setPoint.value > 1:
            if unplugs { close(ends[1]) } else { _ = Output.write(all: [UInt8(ascii: "f")], to: ends[1]) }
            $0 = 3
          case 3 where setPoint == Self.zero && !unplugs: pty.type("q"); $0 = 4
          default: break
          }
        }
        return DrivenBoard.answered
      }
      close(ends[0])
      if !unplugs { close(ends[1]) }
      #expect(end == (unplugs ? .other("letters is gone") : nil))
      #expect(board.peak > 1 && board.values.last == Self.zero)
    }
  }

  @Test func `a terminal that hangs up ends in zero`() throws {
    let board = DrivenBoard()
    let pty = try PTY()
    let end = try drive(board, pty) { _, board in
      if board.peak < 0.2, board.values.count.isMultiple(of: 3) { pty.type("w") }
      if board.peak >= 0.2 { pty.hangUp() }
      return DrivenBoard.answered
    }
    #expect(end == nil && board.values.last == Self.zero)
  }

  @Test func `a lost lease ends the drive with its reason`() throws {
    let board = DrivenBoard()
    let end = try drive(board, try PTY()) { _, board in
      if board.values.count == 5 { board.endLease("link down") }
      return DrivenBoard.answered
    }
    #expect(end == .rejected(.leaseLost(device: "board", reason: "link down")))
  }

  @Test func `a setpoint that finds no link leaves the reason to the lease`() throws {
    let board = DrivenBoard()
    let end = try drive(board, try PTY()) { _, board in
      guard board.values.count == 5 else { return DrivenBoard.answered }
      SocketServer.send(board.driver, VarlinkReply.message(.notConnected(device: "board", reason: "link down")))
      usleep(50_000)  // the other connection is slower
      board.endLease("disconnected on request")
      return .nothing
    }
    #expect(end == .rejected(.leaseLost(device: "board", reason: "disconnected on request")))
  }

  @Test func `a stick drives within the limit; B holds zero until the stick is at rest`() throws {
    let board = DrivenBoard()
    let ends = try Self.pipe()
    let phase = Mutex(0)
    let end = try drive(board, nil, stick: LetterStick(ends[0])) { setPoint, board in
      phase.withLock {
        switch $0 {
        case 0: _ = Output.write(all: Array("rf".utf8)[...], to: ends[1]); $0 = 1
        case 1 where setPoint.value == 2: _ = Output.write(all: [UInt8(ascii: "s")], to: ends[1]); $0 = 2
        case 2 where setPoint == Self.zero: $0 = 3
        case 3...20:
          if setPoint != Self.zero { $0 = 100 } else { $0 += 1 }
          if $0 == 21 { _ = Output.write(all: [UInt8(ascii: "e")], to: ends[1]) }
        default: break
        }
      }
      return DrivenBoard.answered
    }
    for descriptor in ends { close(descriptor) }
    #expect(end == nil && phase.withLock { $0 } == 21 && board.values.last == Self.zero)
  }

  /// A pipe: the end to read, the end to write.
  private static func pipe() throws -> [Int32] {
    var ends: [Int32] = [-1, -1]
    try #require(Glibc.pipe(&ends) == 0)
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return ends
  }
}
