import Testing

@testable import Protocols

/// The lines of the car's status: their properties, and when they are requested.
@Suite struct CarStatusTests {
  private static func hearing(_ lines: String...) -> CarRig {
    var rig = CarRig.ready()
    for line in lines { rig.receive("Status#$#\(line)%^%\r\n") }
    return rig
  }

  @Test func `the known status lines become properties`() {
    let rig = Self.hearing(String(decoding: CarVector.status.utf8.dropFirst(9).dropLast(5), as: UTF8.self))
    let values = [
      "motor-battery-voltage": 7.41, "pi-battery-voltage": 5.02, "temperature": 48.3, "cpu-usage": 5.9, "memory-used": 612,
      "memory-free": 336,
      "disk-used": 3.9, "disk-free": 10,
    ]
    for (name, value) in values { #expect(rig.number(name) == value, "\(name)") }
    #expect(rig.machine.schema.properties.first { $0.name == "temperature" }?.unit == "°C")
    #expect(rig.machine.schema.properties.count == CarProperty.allCases.count)
    guard case .value(.list(let lines))? = rig.values["status"] else {
      Issue.record("no status")
      return
    }
    #expect(lines.count == 8 && lines[1] == "Raspberry Pi's battery voltage: 5.02 V")
  }

  @Test(arguments: [
    ("Temperature: 48,3 C", "temperature", "\"48,3 C\" has a decimal comma: set the car's locale to English"),
    ("Temperature: ", "temperature", "empty in the car's status"), ("Temperature: warm", "temperature", "invalid value \"warm\""),
    ("Temperature: 118 F", "temperature", "invalid value \"118 F\""), ("Temperature: 4000 C", "temperature", "invalid value \"4000 C\""),
    ("Temperature: 4.8.3 C", "temperature", "invalid value \"4.8.3 C\""), ("temperature 48.3 C", "temperature", "not in the car's status"),
    ("CPU usage: nan %", "cpu-usage", "invalid value \"nan %\""),
    ("Memory used: 1,612 MB", "memory-used", "\"1,612 MB\" has a decimal comma: set the car's locale to English"),
  ]) func `an invalid value is absent, and the reason contains it`(_ line: String, _ name: String, _ reason: String) {
    #expect(Self.hearing(line).absence(name) == reason)
    // An earlier value is withdrawn.
    #expect(Self.hearing("Temperature: 48.3 C;CPU usage: 5 %;Memory used: 1 MB", line).absence(name) == reason)
  }

  @Test func `escape sequences are removed`() {
    let rig = Self.hearing("CPU usage: \u{1B}[1m5.9\u{1B}[0m %")
    #expect(rig.number("cpu-usage") == 5.9 && rig.values["status"] == .value(.list(["CPU usage: 5.9 %"])))
  }

  @Test func `unknown status lines become properties at run time`() {
    var rig = Self.hearing("Wheel speed (left): 1.5 m/s;Driver: Ann;Laps: 3;Empty:;no colon; :x;Grade: 4,5 °;Charge state: 80 %")
    func property(_ name: String) -> Property? { rig.machine.schema.properties.first { $0.name == name } }
    #expect(rig.number("wheel-speed-left") == 1.5 && property("wheel-speed-left")?.unit == "m/s")
    #expect(rig.text("driver") == "Ann" && rig.number("laps") == 3 && property("laps")?.unit == nil)
    #expect(rig.absence("grade")?.contains("decimal comma") == true && property("grade")?.type == .float && property("empty") == nil)
    #expect(rig.machine.schema.properties.count == CarProperty.allCases.count + 5)
    rig.receive("Status#$#Laps: many;Driver: 7;Empty: 1 V%^%\r\n")
    #expect(rig.absence("laps") == "invalid value \"many\"" && rig.text("driver") == "7" && rig.number("empty") == 1)
    #expect(rig.absence("wheel-speed-left") == "not in the car's status")
  }

  @Test func `property names are short and unique`() {
    var rig = Self.hearing("Connected: yes;9 lives: 8;***: 1;!!!: 2;\(String(repeating: "long ", count: 30)): 1")
    let names = rig.machine.schema.properties.map(\.name)
    #expect(Set(names).count == names.count && names.contains("connected-2") && names.contains("status-9-lives"))
    #expect(names.contains("status-line") && names.contains("status-line-2"))
    #expect(
      names.allSatisfy {
        $0.utf8.count <= 48 && $0.utf8.allSatisfy { $0 == 0x2D || (0x30...0x39).contains($0) || (0x61...0x7A).contains($0) }
      })
    #expect(rig.text("connected") == "on" && rig.text("connected-2") == "yes")
    for round in 0..<20 { rig.receive("Status#$#" + (0..<60).map { "Line \(round) \($0): 1 V" }.joined(separator: ";") + "%^%\r\n") }
    #expect(rig.machine.schema.properties.count == CarProperty.allCases.count + 32)
    #expect(rig.number("bad-frames") == 0 && rig.status == "ready")
  }

  @Test func `a repeated label counts once`() {
    #expect(Self.hearing("Temperature: 40 C;Temperature: 50 C").number("temperature") == 40)
  }

  // MARK: When it is requested

  @Test func `the status is requested at the interval while the car is not driven`() {
    var rig = CarRig.ready(["status-interval": .float(10)])
    let start = rig.now
    for _ in 0..<5 {
      rig.run(for: 5 * .second)
      rig.receive(CarVector.status)
    }
    #expect(rig.times(since: start, "Status").count == 3 && rig.number("temperature") == 48.3)
    let property = rig.machine.schema.properties.first { $0.name == "temperature" }
    #expect(property?.lifetime == .fresh(30 * .second))
    let lease = rig.now
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    rig.drive(for: 30 * .second)
    #expect(rig.times(since: lease, "Status").isEmpty && rig.lost.isEmpty)
    rig.give(.leaseEnded("done"))
    let end = rig.now
    rig.run(for: .second)
    #expect(rig.times(since: end, "Status") == [230])
  }

  @Test func `refresh requests the status at once, and completes with it`() {
    var rig = CarRig.ready()
    rig.run(for: 100 * .second)
    #expect(rig.types().contains("Status") == false)
    let id = rig.act(.refresh)
    let other = rig.act(.refresh)
    rig.run(for: 100 * .millisecond)
    rig.receive(CarVector.status)
    #expect(rig.report(id)?.rows.count == 8 && rig.report(other)?.rows.first == ["Motor battery voltage: 7.41 V"])
    #expect(rig.types().filter { $0 == "Status" }.count == 1)
    let late = rig.act(.refresh)
    rig.run(for: 4 * .second)
    #expect(rig.error(late) == .timeout(milliseconds: 3000) && rig.number("temperature") == 48.3)
  }

  @Test func `the status is not requested while the car is driven`() {
    var rig = CarRig.driving()
    let id = rig.act(.refresh)
    #expect(rig.code(id) == "driving")
    // A request that waits when a lease begins is rejected as well.
    rig.give(.leaseEnded("done"))
    let waiting = rig.act(.refresh)
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    rig.drive(for: .second)
    #expect(rig.code(waiting) == "driving" && !rig.types().contains("Status"))
  }

  /// While the car is out of range, the kernel buffers the messages, and the link stays up.
  @Test func `a car that does not respond is silent until its next message`() {
    var rig = CarRig.ready(["status-interval": .float(10)])
    rig.run(for: 30 * .second)
    #expect(rig.status == "silent" && rig.fault == CarMotion.lostMessage && rig.values["connected"] == .value(.bool(false)))
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.lost == [CarMotion.lostMessage])
    let requests = rig.types().count { $0 == "Status" }
    rig.run(for: 30 * .second)
    #expect(rig.types().count { $0 == "Status" } == requests + 3)
    rig.receive(CarVector.gyro)
    #expect(rig.status == "ready" && rig.fault == nil && rig.values["connected"] == .value(.bool(true)))
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    #expect(rig.status == "driving")
  }

  /// A car of the documented dialect need not support the request.
  @Test func `a car of the documented dialect need not support Status`() {
    var rig = CarRig(["status-interval": .float(10), "dialect": .string("documented")])
    rig.start()
    rig.receive(CarVector.gyro.replacing("\r\n", with: ""))
    rig.run(for: 60 * .second)
    #expect(rig.status == "ready" && rig.types().count { $0 == "Status" } > 3)
  }

  /// The car stands still until it reads Continue, and a driver who has to wait would lose the lease.
  @Test func `Continue does not wait for the status`() {
    var rig = CarRig.ready()
    _ = rig.act(.refresh)
    let start = rig.now
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    rig.drive(for: 800 * .millisecond)
    #expect(rig.messages(since: start) == ["Status#$#", "Continue#$#"] && rig.tilts.count > 30 && rig.lost.isEmpty)
    rig.receive(CarVector.status)
    rig.drive(for: 500 * .millisecond)
    #expect(rig.lost.isEmpty && rig.text("running") == "on")

    rig = CarRig.ready()
    _ = rig.act(.refresh)
    let stop = rig.act(.stop)
    #expect(rig.messages().last == "Stop#$#")
    rig.run(for: 500 * .millisecond)
    #expect(rig.isDone(stop))
  }

  /// While the car is not driven, other messages wait: the car discards what it reads after a command that fails.
  @Test func `other commands wait for the status`() {
    var rig = CarRig.ready()
    let start = rig.now
    _ = rig.act(.refresh)
    _ = rig.act(.modeInfo, ["mode": .string("1")])
    rig.run(for: 800 * .millisecond)
    #expect(rig.messages(since: start) == ["Status#$#"])
    rig.receive(CarVector.status)
    rig.run(for: 100 * .millisecond)
    #expect(rig.messages(since: start) == ["Status#$#", "InfoModes#$#1"])
  }
}
