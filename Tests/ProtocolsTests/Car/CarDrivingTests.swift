import Testing

@testable import Protocols

/// Driving, in virtual time: whatever ends the lease, Stop is the next message, in the same turn.
@Suite struct CarDrivingTests {
  /// Expects Stop now, twice more, a request for the confirmation, and nothing else.
  static func expectStop(_ rig: inout CarRig, from start: Instant, words: [String] = ["Stop#$#", "Stop#$#", "Stop#$#", "Modes#$#"]) {
    #expect(rig.writes.first { $0.at >= start && !$0.text.hasPrefix("Gyro") }?.at == start)
    let tilts = rig.tilts.count
    rig.run(for: 2 * .second)
    #expect(rig.messages(since: start) == words && rig.tilts.count == tilts)
    #expect(rig.text("running") == "off" && rig.absence("roll") == "not driven")
  }

  @Test func `the first setpoint sends Continue, and is sent after a pause`() {
    var rig = CarRig.ready()
    let start = rig.now
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.messages(since: start) == [] && rig.status == "driving" && rig.absence("roll") == "no setpoint")
    let first = rig.tilt(0.4, 0.2)
    #expect(rig.messages(since: start) == ["Continue#$#"] && rig.text("running") == "on" && rig.isDone(first))
    rig.run(for: 49 * .millisecond)
    #expect(rig.tilts.isEmpty)
    rig.run(for: .millisecond)
    #expect(rig.tilts == [" 0.400000; 0.200000; 0.000000"])
    #expect(rig.number("roll") == 0.4 && rig.number("pitch") == 0.2 && rig.number("yaw") == 0)
  }

  @Test func `without a lease nothing moves the car`() {
    var rig = CarRig.ready()
    let start = rig.now
    let tilt = rig.tilt(0.4, 0)
    let go = rig.act(.proceed)
    rig.run(for: .second)
    #expect(rig.code(tilt) == "no-lease" && rig.code(go) == "no-lease" && rig.types(since: start).isEmpty)
  }

  @Test func `the lease is refused until the car has requested tilt`() {
    var rig = CarRig(["status-interval": .float(0)])
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost.last == "the link is not up yet")
    rig.start()
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost.last == "the car has not responded yet")
    rig.receive(CarVector.modes)
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost.last == "the car has not requested tilt yet: wait, or set tilt-rate in the configuration")
    rig.receive("Gyro#$#0.05%^%")
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost.count == 3 && rig.status == "driving")
  }

  @Test func `with a configured rate the lease does not require a request of the car`() {
    var rig = CarRig(["tilt-rate": .float(50), "status-interval": .float(0)])
    rig.start()
    rig.receive(CarVector.modes)
    rig.run(for: .second)
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    rig.drive(for: .second)
    #expect(rig.lost.isEmpty && rig.tilts.count > 40)
  }

  // MARK: Every way of losing the lease

  @Test func `a holder that releases the lease stops the car`() {
    var rig = CarRig.driving()
    let end = rig.now
    rig.give(.leaseEnded("the driver let go"))
    #expect(rig.times(since: end, "Stop") == [0] && rig.lost.isEmpty)
    Self.expectStop(&rig, from: end)
    #expect(rig.times(since: end, "Stop") == [0, 60, 120])
  }

  @Test func `a client that stops sending setpoints loses the lease`() {
    var rig = CarRig.driving()
    let last = rig.now - .second / 60
    rig.run(for: 300 * .millisecond)
    #expect(rig.lost == ["no setpoint for 300 ms"] && rig.status == "ready")
    Self.expectStop(&rig, from: last + 300 * .millisecond)
  }

  @Test func `a car that does not acknowledge is stopped`() {
    var rig = CarRig.driving()
    rig.tiltFailure = "the other side has not acknowledged the last 3000 bytes"
    let end = rig.now
    let tilt = rig.tilt(0.4, 0)
    #expect(rig.lost == [rig.tiltFailure ?? ""] && rig.error(tilt) == .notConnected(rig.tiltFailure ?? ""))
    // The response shows what the car has received.
    Self.expectStop(
      &rig, from: end, words: ["Stop#$#", "Stop#$#", "Stop#$#", "Modes#$#", "Stop#$#", "Stop#$#", "Stop#$#", "Modes#$#"])
  }

  @Test func `GyroStop revokes the lease`() {
    var rig = CarRig.driving()
    let end = rig.now
    rig.receive("GyroStop#$#%^%\r\n")
    #expect(rig.lost == ["the car stopped accepting tilt (GyroStop)"] && rig.absence("tilt-rate")?.contains("GyroStop") == true)
    Self.expectStop(&rig, from: end)
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost.last == "the car does not accept tilt (GyroStop): wait until it requests it again")
    rig.receive(CarVector.gyro)
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost.count == 2 && rig.number("tilt-rate") == 60)
  }

  @Test func `after a lost link Stop is the first message over the next one`() {
    var rig = CarRig.driving()
    rig.disconnect()
    #expect(
      rig.lost == ["gone"] && rig.absence("running") == CarStandstill.unconfirmed && rig.fault == CarStandstill.drivenMessage)
    let count = rig.writes.count
    rig.run(for: 2 * .second)
    #expect(rig.writes.count == count && rig.machine.nextWake == nil)
    let start = rig.now
    rig.connect()
    rig.run(for: .second)
    #expect(rig.messages(since: start) == ["Stop#$#", "Modes#$#", "MainView#$#Entered"])
  }

  @Test func `a link that accepts no write is reset after a second`() {
    var rig = CarRig.driving()
    rig.acceptsWrites = false
    _ = rig.tilt(0.4, 0)
    rig.run(for: 999 * .millisecond)
    #expect(rig.lost == ["no setpoint for 300 ms"] && rig.resets.isEmpty)
    rig.run(for: .millisecond)
    #expect(rig.resets == ["write timeout"])
  }

  @Test func `a command and a tilt that are both late are sent without delay`() {
    var rig = CarRig.driving()
    // A command was just sent, so the next one must wait; then the link accepts a tilt too late for it.
    let first = rig.act(.proceed)
    rig.drive(for: 60 * .millisecond)
    #expect(rig.messages().last == "Continue#$#" && rig.isDone(first))
    let second = rig.act(.modeInfo, ["mode": .string("1")])
    rig.drive(for: 90 * .millisecond)
    rig.acceptsWrites = false
    rig.drive(for: 200 * .millisecond)
    let start = rig.now
    rig.restoreWrites()
    #expect(rig.machine.nextWake ?? .max > rig.now, "everything due was sent, so no wake is due")
    #expect(rig.types(since: start) == ["Gyro"])
    rig.run(for: 50 * .millisecond)
    #expect(rig.messages(since: start) == ["InfoModes#$#1"] && rig.error(second) == nil)
  }

  @Test func `a write that ends late after a suspend does not reset the link`() {
    var rig = CarRig.driving()
    rig.acceptsWrites = false
    rig.run(for: 20 * .millisecond)
    #expect(rig.outstanding != nil)
    rig.now += 60 * .second
    let end = rig.now
    rig.restoreWrites()
    #expect(rig.resets.isEmpty && rig.lost == ["no setpoint for 300 ms"])
    Self.expectStop(&rig, from: end)
  }

  @Test func `while a tilt is in flight, Stop is the next write`() {
    var rig = CarRig.driving()
    rig.run(for: 20 * .millisecond)
    rig.acceptsWrites = false
    let ids = (0..<4).map { rig.tilt(0.1 * Double($0), 0) }
    rig.run(for: 20 * .millisecond)
    let count = rig.writes.count
    rig.give(.leaseEnded("the driver let go"))
    #expect(ids.allSatisfy { rig.code($0) == "lease-lost" } && rig.writes.count == count)
    rig.restoreWrites()
    #expect(rig.writes.count == count + 1 && rig.messages().last == "Stop#$#")
    Self.expectStop(&rig, from: rig.now)
  }

  @Test func `a stopping daemon stops the car and disconnects`() {
    var rig = CarRig.driving()
    let end = rig.now
    rig.give(.stopping)
    #expect(rig.times(since: end, "Stop") == [0] && rig.lost == ["the link is being closed"] && rig.stopped == nil)
    rig.run(for: .second)
    #expect(rig.messages(since: end) == ["Stop#$#", "Stop#$#", "Modes#$#", "Disconnect#$#"] && rig.stopped == end + 170 * .millisecond)
    #expect(rig.machine.nextWake == nil)
  }

  // MARK: Stop and Continue

  @Test func `any client can stop the car, and only continue drives on`() {
    var rig = CarRig.driving()
    let end = rig.now
    let stop = rig.act(.stop)
    #expect(rig.results[stop] == nil && rig.messages(since: end) == ["Stop#$#"] && rig.lost.isEmpty)
    #expect(rig.absence("running") == CarStandstill.unconfirmed)
    rig.drive(for: .second)
    #expect(rig.messages(since: end) == ["Stop#$#", "Stop#$#", "Stop#$#", "Modes#$#"] && rig.times(since: end, "Gyro").isEmpty)
    #expect(rig.isDone(stop) && rig.text("running") == "off")
    // The lease is still held, and the reply to a setpoint contains the reason.
    let tilt = rig.tilt(0.4, 0)
    #expect(rig.lost.isEmpty && rig.report(tilt)?.text == "the car was stopped, but the lease is still held: use continue to drive again")
    let go = rig.act(.proceed)
    #expect(rig.isDone(go) && rig.text("running") == "on")
    let start = rig.now
    // The setpoints before the stop are discarded.
    rig.run(for: 100 * .millisecond)
    #expect(rig.times(since: start, "Gyro").isEmpty)
    rig.drive(for: .second)
    #expect(rig.tilts.count > 90)
  }

  @Test func `many stop commands do not flood the car with Stop`() {
    var rig = CarRig.driving()
    let start = rig.now
    let ids = (0..<500).map { _ in
      rig.run(for: .millisecond)
      return rig.act(.stop)
    }
    rig.run(for: .second)
    #expect(rig.times(since: start, "Stop").count <= 13 && ids.allSatisfy { rig.results[$0]?.count == 1 })
    #expect(rig.times(since: start, "Stop").first == 1)
  }

  @Test func `stop removes queued commands that would move the car`() {
    var rig = CarRig.driving()
    _ = rig.act(.stop)
    let go = rig.act(.proceed)
    let stop = rig.act(.stop)
    rig.run(for: .second)
    #expect(
      rig.code(go) == "stopped" && rig.isDone(stop) && rig.messages().suffix(2) == ["Stop#$#", "Modes#$#"]
        && rig.text("running") == "off")
  }

  @Test func `a new driver starts after the Stops of the last lease`() {
    var rig = CarRig.driving()
    let end = rig.now
    rig.give(.leaseEnded("done"))
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    rig.drive(for: .second)
    #expect(rig.messages(since: end) == ["Stop#$#", "Stop#$#", "Stop#$#", "Modes#$#", "Continue#$#"])
    #expect(rig.times(since: end, "Continue") == [230] && (rig.times(since: end, "Gyro").first ?? 0) >= 280)
  }

  @Test func `each of several leases ends with Stop at once`() {
    var rig = CarRig.driving()
    for _ in 0..<20 {
      rig.give(.leaseEnded("done"))
      #expect(rig.types().last == "Stop")
      rig.give(.leaseBegan(deadline: 300 * .millisecond))
      rig.drive(for: 400 * .millisecond)
      #expect(rig.types().last == "Gyro")
    }
  }

  @Test func `stop fails without a link, and is sent to a silent car`() {
    var rig = CarRig(["status-interval": .float(0)])
    let down = rig.act(.stop)
    #expect(rig.error(down) == .notConnected("\(CarStandstill.unconfirmed); the link is not up yet"))
    rig.start()
    rig.run(for: 6 * .second)
    let silent = rig.act(.stop)
    #expect(rig.status == "silent" && rig.results[silent] == nil && rig.messages().last == "Stop#$#")
    rig.run(for: 2 * .second)
    #expect(rig.code(silent) == "not-confirmed" && rig.refusal(silent).hasPrefix(CarStandstill.unconfirmed))
  }

  // MARK: Commands between tilts

  @Test func `commands are sent alone, with pauses between them and the tilts`() {
    var rig = CarRig.driving(mode: 1)
    rig.receive("ButtonsOn#$#%^%\r\n")
    let start = rig.now
    let left = rig.set("left-button", .bool(true))
    rig.drive(for: .second)
    #expect(rig.isDone(left) && rig.text("left-button") == "on")
    guard let word = rig.writes.first(where: { $0.text.hasPrefix("Left") }) else {
      Issue.record("no button")
      return
    }
    #expect(word.at - start <= 100 * .millisecond)
    for tilt in rig.writes where tilt.text.hasPrefix("Gyro") { #expect(abs(tilt.at - word.at) >= 50 * .millisecond) }
    #expect(rig.times(since: start, "Gyro").count >= 40)
  }

  @Test func `many commands do not interrupt the tilts for long`() {
    var rig = CarRig.driving()
    rig.receive("ConnectionTest#$#0.001%^%\r\n")
    let start = rig.now
    let infos = rig.act(.modeInfo)
    rig.drive(for: 4 * .second)
    #expect(rig.times(since: start, "Gyro").count >= 100 && rig.lost.isEmpty && rig.results[infos]?.count == 1)
    for word in rig.writes where word.at >= start && !word.text.hasPrefix("Gyro") {
      #expect(!rig.writes.contains { $0.text.hasPrefix("Gyro") && abs($0.at - word.at) < 50 * .millisecond })
    }
  }

  @Test func `a setpoint with a missing angle is rejected`() {
    var rig = CarRig.driving()
    let id = rig.act(.tilt, ["roll": .float(0.1)])
    #expect(rig.error(id) == .invalid(argument: "pitch", "is missing: give it in rad"))
    let flood = (0..<200).map { rig.tilt(Double($0) / 1000, 0) }
    rig.run(for: 100 * .millisecond)
    #expect(flood.allSatisfy { rig.isDone($0) } && rig.number("roll") == 0.199)
  }

  @Test func `a setpoint is sent even if its caller has disconnected`() {
    var rig = CarRig.driving()
    _ = rig.tilt(0.5, 0)
    let id = rig.tilt(0.6, 0)
    rig.give(.cancelled(id))
    rig.run(for: 50 * .millisecond)
    #expect(rig.results[id] == nil && rig.number("roll") == 0.6)
  }
}
