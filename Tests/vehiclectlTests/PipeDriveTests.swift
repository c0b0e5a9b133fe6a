// Lines of JSON that wait in a pipe: which are sent, and which end the drive.

import ArgumentParser
import Glibc
import Protocols
import Synchronization
import Testing
import Varlink

@testable import vehiclectl

@Suite struct PipeDriveTests {
  typealias Reply = @Sendable (DrivenCar.ReceivedCall, DrivenCar) -> Answer

  /// Drives with lines of a pipe; returns the error that ended the drive, or nil.
  private func drive(_ car: DrivenCar, _ input: Int32, timeout: String = "15", then: @escaping Reply) throws -> (any Error)? {
    let server = try SocketServer { connection, method, parameters in car.answer(connection, method, parameters, then: then) }
    defer { server.stop() }
    let common = try CommonOptions.parse(["--socket", server.path, "-q", "--timeout", timeout])
    var drive = PipeDrive(common, Output(common), DrivenCar.driveSchema, deadline: 300, input: input)
    do { try drive.run(holder: try common.connect(Output(common))) } catch { return error }
    return nil
  }

  private func pipe() -> (read: Int32, write: Int32) {
    var ends: [Int32] = [-1, -1]
    #expect(Glibc.pipe(&ends) == 0)
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return (ends[0], ends[1])
  }

  /// Drives with these lines, all available at once.
  private func feed(
    _ car: DrivenCar, _ text: String, timeout: String = "15", then: @escaping Reply = { _, _ in DrivenCar.answered }
  ) throws -> (any Error)? {
    let ends = pipe()
    #expect(Output.write(all: Array(text.utf8)[...], to: ends.write))
    close(ends.write)
    defer { close(ends.read) }
    return try drive(car, ends.read, timeout: timeout, then: then)
  }

  @Test func `of waiting lines only the last setpoint is sent, and all actions in order`() throws {
    let car = DrivenCar()
    let lines = [
      #"{"roll":0.1,"pitch":0}"#, #"{"do":"stop"}"#, "  ", #"{"roll":0.2,"pitch":0}"#, #"{"do":"continue"}"#,
      #"{"pitch":0.5,"roll":0.3,"yaw":1}"#,
    ]
    #expect(try feed(car, lines.joined(separator: "\n")) == nil)
    #expect(
      car.calls.filter { $0.action != "tilt" } == [.init(action: "stop", hasLease: false), .init(action: "continue", hasLease: true)])
    #expect(car.calls.filter { $0.action == "tilt" } == [.init(action: "tilt", roll: 0.3, pitch: 0.5, hasLease: true)])
  }

  @Test func `an invalid line ends the drive with its number`() throws {
    let car = DrivenCar()
    let end = try feed(car, "\n{\"roll\":0,\"pitch\":0}\n{\"roll\":1}\n{\"roll\":0,\"pitch\":0}\n") as? Failure
    #expect(end?.exitCode == 2 && end?.message == "line 3: tilt requires pitch")
    #expect(car.calls.isEmpty)
    let long = try feed(car, String(repeating: " ", count: 10_000) + "{}") as? Failure
    #expect(long?.message.hasPrefix("line 1: empty object") == true)
  }

  private static let lines = #"{"do":"stop"}"# + "\n" + #"{"do":"continue"}"# + "\n" + #"{"roll":0.1,"pitch":0}"#

  @Test func `errors of the device do not end the drive`() throws {
    let car = DrivenCar()
    let end = try feed(car, Self.lines) { call, _ in
      switch call.action {
      case "stop": .send(VarlinkReply.message(.timeout(device: "rover", milliseconds: 900)))
      case "continue": .send(VarlinkReply.message(.deviceError(device: "rover", code: "busy", message: "it turns")))
      default: .send(VarlinkReply.message(.outOfRange(property: "roll", message: "9 is too much")))
      }
    }
    #expect((end as? ExitCode) != nil && car.calls.map(\.action).sorted() == ["continue", "stop", "tilt"])
  }

  @Test func `an error is reported with its line, a repeated one of setpoints only once`() throws {
    let common = try CommonOptions.parse(["-q"])
    var drive = PipeDrive(common, Output(common), DrivenCar.driveSchema, deadline: 300, input: -1)
    let tilt: DriveRequest = .run(action: "tilt", arguments: ["roll": .float(9), "pitch": .float(0)], motion: true)
    let stop: DriveRequest = .run(action: "stop", arguments: [:], motion: false)
    let busy = Failure.rejected(.deviceError(device: "rover", code: "busy", message: "it turns"))
    let far = Failure.rejected(.outOfRange(property: "roll", message: "9 is too much"))
    let late = Failure.rejected(.timeout(device: "rover", milliseconds: 900))
    #expect(try drive.message(for: busy, to: tilt, 3) == "line 3: rover: it turns (busy)")
    #expect(try drive.message(for: busy, to: tilt, 4) == nil)
    #expect(try drive.message(for: busy, to: stop, 5) == "line 5: rover: it turns (busy)")
    #expect(try drive.message(for: busy, to: stop, 6) == "line 6: rover: it turns (busy)")
    #expect(try drive.message(for: far, to: tilt, 7) == "line 7: roll: 9 is too much")
    #expect(try drive.message(for: busy, to: tilt, 8) == "line 8: rover: it turns (busy)")
    #expect(try drive.message(for: late, to: stop, 9)?.hasPrefix("line 9: rover did not respond within 0.9 s") == true)
    #expect(throws: late) { try drive.message(for: late, to: tilt, 10) }
    let ends: [Failure] = [.rejected(.leaseLost(device: "rover", reason: "x")), .timeout(seconds: 1), .daemonGone("it")]
    for end in ends { #expect(throws: end) { try drive.message(for: end, to: stop, 11) } }
  }

  @Test(arguments: [
    ContractError.notConnected(device: "rover", reason: "link down"), .leaseLost(device: "rover", reason: "it has ended"),
  ])
  func `the reason of the lease takes precedence over that of a setpoint`(_ error: ContractError) throws {
    let lost =
      try feed(DrivenCar(), Self.lines) { call, car in
        guard call.action == "tilt" else { return DrivenCar.answered }
        car.endLease("disconnected on request")
        return .send(VarlinkReply.message(error))
      } as? Failure
    #expect(lost == .rejected(.leaseLost(device: "rover", reason: "disconnected on request")) && lost?.exitCode == 1)
    let alone = try feed(DrivenCar(), Self.lines) { call, _ in
      call.action == "tilt" ? .send(VarlinkReply.message(error)) : DrivenCar.answered
    }
    #expect(alone as? Failure == .rejected(error))
  }

  @Test func `setpoints are sent while a stop waits for its reply`() throws {
    let (car, ends) = (DrivenCar(), pipe())
    defer { close(ends.read) }
    let write: @Sendable (String) -> Void = { _ = Output.write(all: Array("\($0)\n".utf8)[...], to: ends.write) }
    write(#"{"do":"stop"}"#)
    let end = try drive(car, ends.read, timeout: "5") { call, car in
      switch call.action {
      case "stop":
        write(#"{"roll":0.1,"pitch":0}"#)
        return .nothing
      case "tilt" where car.tilts < 5:
        write(#"{"roll":0.1,"pitch":0}"#)
      case "tilt":
        car.confirmStop()
        write(#"{"do":"continue"}"#)
      default: close(ends.write)
      }
      return DrivenCar.answered
    }
    #expect(end == nil && car.calls.map(\.action) == ["stop", "tilt", "tilt", "tilt", "tilt", "tilt", "continue"])
  }

  @Test func `a stop waits for no action, replaces the waiting ones, and follows the one in flight`() throws {
    let (car, ends) = (DrivenCar(), pipe())
    defer { close(ends.read) }
    let write: @Sendable (String) -> Void = { _ = Output.write(all: Array("\($0)\n".utf8)[...], to: ends.write) }
    write(#"{"do":"continue"}"#)
    let end = try drive(car, ends.read, timeout: "5") { call, car in
      switch (call.action, car.calls.count { $0.action == "stop" }) {
      case ("continue", 0):
        write(#"{"do":"continue"}"# + "\n" + #"{"do":"stop"}"#)
        return .nothing
      case ("stop", 1): car.confirmContinue()
      default: close(ends.write)
      }
      return DrivenCar.answered
    }
    #expect(end == nil && car.calls.map(\.action) == ["continue", "stop", "stop"])
  }

  @Test func `a stop at the end of the input is confirmed or reported`() throws {
    let confirmed = Mutex(false)
    let end = try feed(DrivenCar(), #"{"do":"stop"}"#) { _, _ in
      usleep(100_000)
      confirmed.withLock { $0 = true }
      return DrivenCar.answered
    }
    #expect(end == nil && confirmed.withLock { $0 })
    let refused = try feed(DrivenCar(), #"{"do":"stop"}"#) { _, _ in
      usleep(100_000)
      return .send(VarlinkReply.message(.timeout(device: "rover", milliseconds: 900)))
    }
    #expect((refused as? ExitCode)?.rawValue == 6)
    let unanswered = try feed(DrivenCar(), #"{"do":"stop"}"#, timeout: "0.2") { _, _ in .nothing }
    #expect((unanswered as? ExitCode)?.rawValue == 6)
  }

  @Test func `a stop without a reply ends the drive while the input stays open`() throws {
    let (car, ends) = (DrivenCar(), pipe())
    defer { for end in [ends.read, ends.write] { close(end) } }
    #expect(Output.write(all: Array(#"{"do":"stop"}"#.utf8) + [10], to: ends.write))
    let end = try drive(car, ends.read, timeout: "0.3") { _, _ in .nothing } as? Failure
    #expect(end == .timeout(seconds: 0.3))
    let common = try CommonOptions.parse(["-q"])
    let stop = ActionQueue.Entry(number: 7, request: .run(action: "stop", arguments: [:], motion: false), lease: nil)
    let drive = PipeDrive(common, Output(common), DrivenCar.driveSchema, deadline: 300, input: -1)
    let message = drive.message(for: .timeout(seconds: 1), of: stop)
    #expect(message == "line 7: stop not confirmed: no reply from vehicled; rover may still be driving")
  }

  @Test func `after an action without a reply the waiting ones are returned, with their lines`() throws {
    let car = DrivenCar()
    let server = try SocketServer { connection, method, parameters in car.answer(connection, method, parameters) { _, _ in .nothing } }
    defer { server.stop() }
    let common = try CommonOptions.parse(["--socket", server.path, "-q"])
    let connect = { try common.connect(Output(common)) }
    var queue = ActionQueue(try connect(), try connect(), device: "rover", timeout: 0.2)
    let `continue`: DriveRequest = .run(action: "continue", arguments: [:], motion: true)
    for number in 1...4 { #expect(try queue.add(.init(number: number, request: `continue`, lease: number == 3 ? nil : "x")).isEmpty) }
    #expect(queue.dropMotion().map(\.number) == [2, 4])
    let last = try #require(try queue.waitForReply())
    #expect(last.entry.number == 1 && last.dropped.map(\.number) == [3])
    #expect(throws: Failure.timeout(seconds: 0.2)) { try last.reply.get() }
    #expect(try queue.waitForReply() == nil)
  }
}
