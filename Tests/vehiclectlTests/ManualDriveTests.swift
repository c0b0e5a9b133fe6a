// Manual driving: the calls on each connection, and how a drive ends.

import CLinux
import Glibc
import Protocols
import Synchronization
import Testing
import Varlink

@testable import vehiclectl

@Suite struct ManualDriveTests {
  /// Drives to the end and returns the error.
  private func drive(
    _ car: DrivenCar, _ pty: PTY? = nil, _ stick: LetterStick? = nil,
    then: @escaping @Sendable (DrivenCar.ReceivedCall, DrivenCar) -> Answer
  ) throws
    -> Failure?
  {
    let server = try SocketServer { connection, method, parameters in car.answer(connection, method, parameters, then: then) }
    defer { server.stop() }
    let common = try CommonOptions.parse(["--socket", server.path, "-q", "--timeout", "20"])
    let terminal = pty.flatMap { RawTerminal($0.slave) }
    var drive = try ManualDrive(
      common, Output(common), DrivenCar.driveSchema, TiltControl(isRelative: false), described: DrivenCar.schema, deadline: 300,
      inputs: DriveInputs(terminal: terminal, stick: stick, keyboard: nil), screen: nil)
    do { try drive.run() } catch { return error as? Failure }
    return nil
  }

  @Test func `setpoints go out under the lease until it is lost, with the reason`() throws {
    let car = DrivenCar()
    let end = try drive(car) { _, car in
      if car.calls.count == 20 { car.endLease("the link is down") }
      return DrivenCar.answered
    }
    #expect(end == .rejected(.leaseLost(device: "rover", reason: "the link is down")) && end?.exitCode == 1)
    #expect(car.calls.count >= 20 && car.calls.allSatisfy { $0 == .init(action: "tilt", roll: 0, pitch: 0, hasLease: true) })
    #expect(car.watched == ["rover.left-button", "rover.right-button"])
  }

  @Test func `only one setpoint is in flight`() throws {
    let car = DrivenCar()
    let end = try drive(car) { _, car in
      usleep(200_000)  // a dozen are due meanwhile
      car.endLease("no setpoint came for 300 ms")
      return .nothing
    }
    #expect(end == .rejected(.leaseLost(device: "rover", reason: "no setpoint came for 300 ms")))
    #expect(car.calls.count == 1)
  }

  @Test func `the reason of the lease takes precedence over that of a setpoint`() throws {
    let car = DrivenCar()
    let end = try drive(car) { _, car in
      if car.calls.count == 3 {
        car.endLease("disconnected on request")
        return .send(VarlinkReply.message(.leaseLost(device: "rover", reason: "it has ended")))
      }
      return DrivenCar.answered
    }
    #expect(end == .rejected(.leaseLost(device: "rover", reason: "disconnected on request")))
  }

  @Test func `only errors that end the lease end the drive`() throws {
    let car = DrivenCar()
    let end = try drive(car) { _, car in
      switch car.calls.count {
      case 5: .send(VarlinkReply.message(.deviceError(device: "rover", code: "expired", message: "it waited")))
      case 9: .send(VarlinkReply.message(.notConnected(device: "rover", reason: "link down")))
      default: DrivenCar.answered
      }
    }
    #expect(end == .rejected(.notConnected(device: "rover", reason: "link down")) && end?.exitCode == 5 && car.calls.count == 9)
  }

  @Test func `keys press and release buttons, errors do not end the drive, pressed buttons are released at the end`() throws {
    let car = DrivenCar()
    let pty = try PTY()
    // A key is typed five setpoints after the press before it arrived: by then the drive knows the state of the button.
    let keys = [",", ",", ".", ",", "q"]
    let script = Mutex((typed: 0, arrived: 0))
    let end = try drive(car, pty) { _, car in
      let (presses, tilts) = (car.presses.count, car.tilts)
      script.withLock { script in
        if presses < script.typed {
          script.arrived = tilts
        } else if script.typed < keys.count, tilts >= script.arrived + 5 {
          pty.type(keys[script.typed])
          script = (script.typed + 1, tilts)
        }
      }
      return DrivenCar.answered
    }
    #expect(end == nil)
    #expect(car.presses == ["left-button on", "left-button off", "right-button on", "left-button on", "left-button off"])
    #expect(car.calls.contains { $0.action == "stop" })
  }

  @Test func `keys drive, continue and stop; a closed terminal stops the car and ends the drive`() throws {
    let car = DrivenCar()
    let pty = try PTY()
    let end = try drive(car, pty) { call, car in
      switch (call.action, car.calls.count) {
      case ("tilt", 1): pty.type("9\u{1b}[A")
      case ("tilt", _) where call.roll ?? 0 > 0 && !car.calls.contains { $0.action == "continue" }: pty.type("d\r")
      case ("tilt", _) where call.pitch ?? 0 > 0 && !car.calls.contains { $0.action == "stop" }: pty.type(" ")
      case ("stop", _): pty.hangUp()
      default: break
      }
      return DrivenCar.answered
    }
    #expect(end == nil)
    let calls = car.calls
    let forward = try #require(calls.firstIndex { $0.roll ?? 0 > 0 })
    #expect(abs((calls[forward].roll ?? 0) - 0.9 * .pi / 4) < 1e-9 && calls[..<forward].allSatisfy { $0.roll == 0 })
    #expect(calls.contains { $0.roll ?? 0 > 0 && $0.pitch ?? 0 > 0 }, "both at once")
    let stop = try #require(calls.firstIndex { $0.action == "stop" })
    #expect(calls.contains { $0.action == "continue" && $0.hasLease })
    #expect(calls[stop...].allSatisfy { $0.action == "stop" ? !$0.hasLease : $0.roll == 0 && $0.pitch == 0 || $0 == calls[stop - 1] })
    #expect(calls[(stop + 1)...].contains { $0.action == "stop" }, "the end stops it again")
  }

  @Test func `q stops the car, ends the drive and restores the terminal`() throws {
    let car = DrivenCar()
    let pty = try PTY()
    let wasRaw = Mutex(false)
    let end = try drive(car, pty) { call, car in
      if car.calls.count == 1 {
        wasRaw.withLock { $0 = pty.isRaw }
        pty.type("q")
      }
      return DrivenCar.answered
    }
    #expect(end == nil && wasRaw.withLock { $0 } && !pty.isRaw)
    #expect(car.calls.last { $0.action == "stop" } == .init(action: "stop", hasLease: false))
  }

  @Test func `the terminal is restored if the lease is rejected`() throws {
    let pty = try PTY()
    let server = try SocketServer { _, method, _ in
      method == Contract.Drive.name ? .send(VarlinkReply.message(.busy(device: "rover", holder: "eve"))) : .nothing
    }
    defer { server.stop() }
    let common = try CommonOptions.parse(["--socket", server.path, "-q"])
    var drive = try ManualDrive(
      common, Output(common), DrivenCar.driveSchema, TiltControl(isRelative: false), described: nil, deadline: 300,
      inputs: DriveInputs(terminal: RawTerminal(pty.slave), stick: nil, keyboard: nil), screen: nil)
    #expect(throws: Failure.rejected(.busy(device: "rover", holder: "eve"))) { try drive.run() }
    #expect(!pty.isRaw)
  }

  @Test(arguments: [true, false])
  func `a stick drives once it was at rest; unplugging it stops the car and fails, START quits`(_ isUnplugged: Bool) throws {
    let car = DrivenCar()
    var ends: [Int32] = [-1, -1]
    #expect(pipe(&ends) == 0)
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    let hand = ends[1]
    let written = Mutex("")
    /// Writes a letter once.
    @Sendable func press(_ letter: Character, _ byte: UInt8) {
      let isNew = written.withLock { letters in
        if letters.contains(letter) { return false }
        letters.append(letter)
        return true
      }
      guard isNew else { return }
      _ = Output.write(all: [byte], to: hand)
    }
    let end = try drive(car, nil, LetterStick(ends[0])) { call, car in
      switch (call.action, car.calls.count) {
      case ("tilt", ...3): press("f", UInt8(ascii: "f"))
      case ("tilt", 10...) where call.roll == 0 && !written.withLock { $0.contains("r") }: press("r", UInt8(ascii: "r"))
      case ("tilt", _) where call.roll ?? 0 > 0: press("g", UInt8(ascii: "g"))
      case ("continue", _): press("s", UInt8(ascii: "s"))
      case ("stop", _) where !written.withLock { $0.contains("e") }:
        if isUnplugged { close(hand) } else { press("e", UInt8(ascii: "e")) }
        written.withLock { $0.append("e") }
      default: break
      }
      return DrivenCar.answered
    }
    close(ends[0])
    if !isUnplugged { close(hand) }
    #expect(end == (isUnplugged ? .other("letters is gone") : nil))
    let calls = car.calls
    let forward = try #require(calls.firstIndex { $0.roll ?? 0 > 0 })
    #expect(forward >= 10 && abs((calls[forward].roll ?? 0) - 0.4 * .pi / 4) < 1e-9, "only after it was at rest")
    #expect(calls.contains { $0.action == "continue" && $0.hasLease } && calls.count { $0.action == "stop" } == 2)
    #expect(calls.last { $0.action == "tilt" }?.roll == 0 || calls.last?.action == "stop")
  }
}
