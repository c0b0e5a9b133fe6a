// Lines of JSON that wait in a pipe: which of them are passed on, and which end it.

import Glibc
import Protocols
import Testing

@testable import vehiclectl

@Suite struct PipeDriveTests {
  /// Drives with these lines, all there at once, until they end.
  private func feed(_ car: DrivenCar, _ text: String) throws -> Failure? {
    let server = try SocketServer { connection, method, parameters in
      car.answer(connection, method, parameters) { _, _ in
        DrivenCar.answered
      }
    }
    defer { server.stop() }
    var ends: [Int32] = [-1, -1]
    #expect(pipe(&ends) == 0 && Output.write(all: Array(text.utf8)[...], to: ends[1]))
    close(ends[1])
    defer { close(ends[0]) }
    let common = try CommonOptions.parse(["--socket", server.path, "-q"])
    var drive = PipeDrive(common, Output(common), DrivenCar.vocabulary, deadline: 300, input: ends[0])
    do { try drive.run(holder: try common.connect(Output(common))) } catch { return error as? Failure }
    return nil
  }

  @Test func `of lines that wait the last set-point counts, and every action in its turn`() throws {
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

  @Test func `a line that makes no sense ends it with its number, wherever it stands`() throws {
    let car = DrivenCar()
    let end = try feed(car, "\n{\"roll\":0,\"pitch\":0}\n{\"roll\":1}\n{\"roll\":0,\"pitch\":0}\n")
    #expect(end?.exitCode == 2 && end?.message.hasPrefix("line 3: rover has no motion property \"roll\"") == true)
    #expect(car.told.isEmpty)
    let long = try feed(car, String(repeating: " ", count: 10_000) + "{}")
    #expect(long?.message.hasPrefix("line 1 asks for nothing") == true)
  }
}
