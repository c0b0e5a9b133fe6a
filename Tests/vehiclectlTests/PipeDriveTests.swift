// Lines of JSON that wait in a pipe: which are sent, and which end the drive.

import Glibc
import Protocols
import Testing

@testable import vehiclectl

@Suite struct PipeDriveTests {
  /// Drives with these lines, all available at once.
  private func feed(
    _ car: DrivenCar, _ text: String, then: @escaping @Sendable (DrivenCar.Told, DrivenCar) -> Answer = { _, _ in DrivenCar.answered }
  ) throws -> Failure? {
    let server = try SocketServer { connection, method, parameters in car.answer(connection, method, parameters, then: then) }
    defer { server.stop() }
    var ends: [Int32] = [-1, -1]
    #expect(pipe(&ends) == 0 && Output.write(all: Array(text.utf8)[...], to: ends[1]))
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    close(ends[1])
    defer { close(ends[0]) }
    let common = try CommonOptions.parse(["--socket", server.path, "-q"])
    var drive = PipeDrive(common, Output(common), DrivenCar.driveSchema, deadline: 300, input: ends[0])
    do { try drive.run(holder: try common.connect(Output(common))) } catch { return error as? Failure }
    return nil
  }

  @Test func `of waiting lines only the last set-point is sent, and all actions in order`() throws {
    let car = DrivenCar()
    let lines = [
      #"{"roll":0.1,"pitch":0}"#, #"{"do":"continue"}"#, "  ", #"{"roll":0.2,"pitch":0}"#, #"{"do":"stop"}"#,
      #"{"pitch":0.5,"roll":0.3,"yaw":1}"#,
    ]
    #expect(try feed(car, lines.joined(separator: "\n")) == nil)
    #expect(
      car.told == [
        .init(action: "continue", hasLease: true), .init(action: "stop", hasLease: false),
        .init(action: "tilt", roll: 0.3, pitch: 0.5, hasLease: true),
      ])
  }

  @Test func `an invalid line ends the drive with its number`() throws {
    let car = DrivenCar()
    let end = try feed(car, "\n{\"roll\":0,\"pitch\":0}\n{\"roll\":1}\n{\"roll\":0,\"pitch\":0}\n")
    #expect(end?.exitCode == 2 && end?.message == "line 3: tilt requires pitch")
    #expect(car.told.isEmpty)
    let long = try feed(car, String(repeating: " ", count: 10_000) + "{}")
    #expect(long?.message.hasPrefix("line 1: empty object") == true)
  }

  private static let lines = #"{"do":"stop"}"# + "\n" + #"{"do":"continue"}"# + "\n" + #"{"roll":0.1,"pitch":0}"#

  @Test func `errors of the device do not end the drive`() throws {
    let car = DrivenCar()
    let end = try feed(car, Self.lines) { told, _ in
      switch told.action {
      case "stop": .send(VarlinkReply.message(.timeout(device: "rover", milliseconds: 900)))
      case "continue": .send(VarlinkReply.message(.deviceError(device: "rover", code: "busy", message: "it turns")))
      default: .send(VarlinkReply.message(.outOfRange(property: "roll", message: "9 is too much")))
      }
    }
    #expect(end == nil && car.told.map(\.action) == ["stop", "continue", "tilt"])
  }

  @Test func `an error is reported with its line, a repeated one of set-points only once`() throws {
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
  func `the reason of the lease takes precedence over that of a set-point`(_ error: ContractError) throws {
    let told = try feed(DrivenCar(), Self.lines) { told, car in
      guard told.action == "tilt" else { return DrivenCar.answered }
      car.lose("disconnected on request")
      return .send(VarlinkReply.message(error))
    }
    #expect(told == .rejected(.leaseLost(device: "rover", reason: "disconnected on request")) && told?.exitCode == 1)
    let untold = try feed(DrivenCar(), Self.lines) { told, _ in
      told.action == "tilt" ? .send(VarlinkReply.message(error)) : DrivenCar.answered
    }
    #expect(untold == .rejected(error))
  }
}
