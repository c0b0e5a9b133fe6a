import Protocols
import Testing
import Varlink

@testable import vehicled

@Suite("DeviceHub") @Loop struct DeviceHubTests {
  private static let schema = Schema(properties: [
    Property("rpm", .int, unit: "rpm", lifetime: .fresh(60 * .millisecond), help: "speed of the motor"),
    Property("odometer", .float, unit: "km", lifetime: .retained, help: "distance ever driven"),
  ])

  /// A device with its own hub that publishes on demand.
  private struct Rig {
    let hub = DeviceHub()
    let probe = Probe()
    let device: Device

    @Loop init(_ name: String = "ev", _ schema: Schema = DeviceHubTests.schema) {
      device = vehicledTests.device(probe, named: name, schema)
      hub.add(device)
    }

    @Loop func publish(_ readings: (Int, Reading.Content)..., age: Nanoseconds = 0) {
      let readings = readings.map { Reading($0.0, $0.1) }
      probe.onInput { _, _, effects in
        for reading in readings {
          switch reading.content {
          case .value(let value): effects.publish(reading.property, value, age: age)
          case .absent(let reason): effects.withdraw(reading.property, reason)
          }
        }
      }
      device.handle(.wake)
    }

    @Loop func declare(_ schema: Schema) {
      probe.onInput { _, _, effects in effects.append(.declare(schema)) }
      device.handle(.wake)
    }

    @Loop func get(_ reference: String) throws -> Contract.Reading {
      let (state, index) = try hub.resolve(reference)
      return state.reading(index, at: Clock.boot())
    }
  }

  /// A client that records its messages and can stop reading.
  private final class Client: WatcherSink {
    var hasRoom = true
    var replies: [Contract.Watch.Result] = []
    /// All changes received, in order.
    var changes: [Contract.Reading] { replies.flatMap { $0.changes ?? [] } }

    func write(_ message: [UInt8]) {
      guard let reply = try? VarlinkReply(Array(message.dropLast())), let result = try? reply.parameters(as: Contract.Watch.Result.self)
      else { return #expect(Bool(false), "not a reply") }
      #expect(reply.continues)
      replies.append(result)
    }
  }

  @Test func `devices with equal schemas share one object`() {
    let rig = Rig()
    let other = vehicledTests.device(Probe(), named: "other", Self.schema)
    let different = vehicledTests.device(Probe(), named: "different", Schema(properties: Array(Self.schema.properties.dropLast())))
    rig.hub.add(other)
    rig.hub.add(different)
    let schemas = rig.hub.states.map(\.sharedSchema)
    #expect(schemas[0] === schemas[1] && schemas[0] !== schemas[2])
  }

  @Test func `a value is published with its unit and time`() throws {
    let rig = Rig()
    #expect(try rig.get("rpm").reason == "not known yet")
    #expect(try rig.get("rpm").time == nil)
    rig.publish((0, .value(.int(824))))
    let reading = try rig.get("ev.rpm")
    #expect(reading.value == .int(824))
    #expect(reading.unit == "rpm")
    #expect(reading.reason == nil)
    #expect(abs((reading.time ?? 0) - Int(Clock.wall())) < 5_000_000)
  }

  @Test func `a stale value is absent, and watchers are notified`() async throws {
    let rig = Rig()
    let client = Client()
    try rig.hub.subscribe(Watcher(sink: client, interval: 0), to: ["rpm"])
    rig.publish((0, .value(.int(824))), (1, .value(.float(12.5))))
    let measured = try #require(client.changes.first { $0.property == "rpm" }?.time)
    #expect(await until { (try? rig.get("rpm").reason) == "stale" })
    #expect(try rig.get("rpm").value == nil)
    let stale = measured + 60_000
    #expect(try rig.get("rpm").time == stale, "absent since the end of its lifetime")
    #expect(try rig.get("odometer").value == .float(12.5))
    #expect(await until { client.changes.last?.reason == "stale" })
    #expect(client.changes.last?.time == stale && client.changes.last?.age == nil)
    // Another reason begins later, and the same one does not begin again.
    rig.publish((0, .absent("not supported")))
    let since = try #require(try rig.get("rpm").time)
    #expect(since > stale && abs(since - Int(Clock.wall())) < 5_000_000)
    rig.publish((0, .absent("not supported")))
    #expect(try rig.get("rpm").time == since)
  }

  @Test func `watchers are notified in time although an earlier value becomes stale much later`() async throws {
    let coolant = Property("coolant", .float, lifetime: .fresh(90 * .second), help: "temperature of the coolant")
    let rig = Rig("ev", Schema(properties: Self.schema.properties + [coolant]))
    let client = Client()
    try rig.hub.subscribe(Watcher(sink: client, interval: 0), to: ["rpm"])
    rig.publish((2, .value(.float(80))))
    rig.publish((0, .value(.int(824))))
    #expect(await until { client.changes.last?.reason == "stale" })
    #expect(try rig.get("coolant").value == .float(80))
  }

  @Test func `a value that became stale while the computer was suspended is withdrawn with the next heartbeat`() throws {
    let rig = Rig()
    let client = Client()
    try rig.hub.subscribe(Watcher(sink: client, interval: 0), to: ["rpm"])
    // Stale at once, as after a suspend, before the timer has fired.
    rig.publish((0, .value(.int(824))), age: .second)
    #expect(client.changes.count == 1)
    rig.hub.sendHeartbeats(Clock.monotonic())
    #expect(client.changes.count == 2 && client.changes.last?.reason == "stale" && client.replies.last?.changes == nil)
  }

  @Test func `the heartbeat runs while values are watched, or observed by another device`() throws {
    let rig = Rig()
    #expect(!rig.hub.isHeartbeatRunning)
    let watcher = Watcher(sink: Client(), interval: 0)
    try rig.hub.subscribe(watcher, to: ["rpm"])
    #expect(rig.hub.isHeartbeatRunning)
    rig.hub.unsubscribe(watcher)
    #expect(!rig.hub.isHeartbeatRunning)
    rig.hub.observe("ev.rpm", for: rig.device)
    #expect(rig.hub.isHeartbeatRunning)
    rig.hub.sendHeartbeats(Clock.monotonic())
    try rig.hub.subscribe(watcher, to: ["rpm"])
    rig.hub.unsubscribe(watcher)
    #expect(rig.hub.isHeartbeatRunning)
  }

  @Test func `a shorter lifetime of a new schema holds for the values before it`() async throws {
    let rig = Rig("ev", Schema(properties: [Property("rpm", .int, unit: "rpm", lifetime: .fresh(60 * .second), help: "")]))
    let client = Client()
    try rig.hub.subscribe(Watcher(sink: client, interval: 0), to: ["rpm"])
    rig.publish((0, .value(.int(824))))
    rig.declare(Self.schema)
    #expect(await until { client.changes.last?.reason == "stale" })
  }

  @Test func `the age of a value is that of its measurement`() async throws {
    let rig = Rig()
    rig.publish((0, .value(.int(824))), (1, .value(.float(1))), age: 60 * .second)
    #expect(try rig.get("rpm").reason == "stale", "the value was stale on arrival")
    let odometer = try rig.get("odometer")
    #expect(odometer.age.map { (60..<70).contains($0) } == true)
    #expect(abs((odometer.time ?? 0) + 60_000_000 - Int(Clock.wall())) < 5_000_000)
  }

  @Test func `values except retained ones are absent while the link is down`() throws {
    let rig = Rig()
    rig.publish((0, .value(.int(824))), (1, .value(.float(12.5))))
    let links = LinkOpener(disk: Disk(directory: "/nonexistent/vehicled-tests"), blueZ: BlueZ(SystemBus()))
    let port = LinkSupervisor(
      LinkRole(schemes: []), .tcp(host: "127.0.0.1", port: 1), device: rig.device, links: links, guardian: Guardian())
    port.close("unplugged")
    #expect(try rig.get("rpm").reason == "link down: unplugged")
    #expect(try rig.get("odometer").value == .float(12.5))
  }

  @Test func `references are resolved or rejected with the reason`() throws {
    let rig = Rig()
    #expect(throws: ContractError.noSuchProperty(device: nil, property: "rpx")) { try rig.hub.resolve("rpx") }
    #expect(throws: ContractError.noSuchProperty(device: "ev", property: "rpx")) { try rig.hub.resolve("ev.rpx") }
    #expect(throws: ContractError.noSuchDevice(device: "bus")) { try rig.hub.resolve("bus.rpm") }
    rig.hub.add(device(Probe(), named: "van", Self.schema))
    #expect(throws: ContractError.ambiguous(reference: "rpm", candidates: ["ev.rpm", "van.rpm"])) { try rig.hub.resolve("rpm") }
  }

  @Test func `a watcher gets a snapshot, then changes in sequence`() throws {
    let rig = Rig()
    rig.publish((0, .value(.int(1))))
    let client = Client()
    try rig.hub.subscribe(Watcher(sink: client, interval: 0), to: nil)
    rig.publish((0, .value(.int(2))), (1, .value(.float(3))))
    rig.publish((0, .value(.int(2))))
    rig.publish((0, .absent("implausible")))
    #expect(client.replies.map(\.sequence) == [0, 1, 2])
    #expect(client.replies[0].snapshot?.first?.readings.first?.value == .int(1))
    #expect(client.replies[1].changes?.map(\.property) == ["rpm", "odometer"])
    #expect(client.replies[2].changes?.first?.reason == "implausible")
  }

  @Test func `a filtered watcher gets only its references`() throws {
    let rig = Rig()
    let client = Client()
    try rig.hub.subscribe(Watcher(sink: client, interval: 0), to: ["ev.odometer"])
    rig.publish((0, .value(.int(2))))
    rig.publish((0, .value(.int(3))), (1, .value(.float(4))))
    #expect(client.replies.count == 2)
    #expect(client.replies[0].snapshot?.first?.readings.map(\.property) == ["odometer"])
    #expect(client.replies[1].changes?.map(\.property) == ["odometer"])
  }

  @Test func `a slow reader gets the latest values once and does not delay others`() throws {
    let rig = Rig()
    let (slow, quick) = (Client(), Client())
    let watcher = Watcher(sink: slow, interval: 0)
    try rig.hub.subscribe(watcher, to: nil)
    try rig.hub.subscribe(Watcher(sink: quick, interval: 0), to: nil)
    slow.hasRoom = false
    for number in 1...100 { rig.publish((0, .value(.int(number)))) }
    #expect(slow.replies.count == 1)
    #expect(quick.replies.count == 101)
    slow.hasRoom = true
    watcher.sendPending()
    #expect(slow.replies.count == 2)
    #expect(slow.replies[1].changes?.map(\.value) == [.int(100)])
    #expect(slow.replies[1].sequence == 1)
  }

  @Test func `pending changes of an old schema are discarded`() throws {
    let rig = Rig()
    let slow = Client()
    let watcher = Watcher(sink: slow, interval: 0)
    try rig.hub.subscribe(watcher, to: nil)
    slow.hasRoom = false
    rig.publish((0, .value(.int(7))), (1, .value(.float(12.5))))
    let new = Schema(properties: [Self.schema.properties[1], Self.schema.properties[0]])
    rig.declare(new)
    slow.hasRoom = true
    watcher.sendPending()
    #expect(slow.changes.isEmpty)
    #expect(slow.replies.last?.snapshot?.first?.readings.map(\.value) == [.float(12.5), .int(7)])
  }

  @Test func `a watcher learns that its property no longer exists, and does not get another one instead`() throws {
    let rig = Rig()
    let (slow, quick) = (Client(), Client())
    let watcher = Watcher(sink: slow, interval: 0)
    try rig.hub.subscribe(watcher, to: ["odometer"])
    try rig.hub.subscribe(Watcher(sink: quick, interval: 0), to: ["odometer"])
    slow.hasRoom = false
    rig.publish((0, .value(.int(7))), (1, .value(.float(12.5))))
    for properties in [[], [Self.schema.properties[0], Property("gear", .string, help: "")]] {
      rig.declare(Schema(properties: properties))
      #expect(quick.replies.compactMap(\.schemas).last?.first?.properties.map(\.name) == properties.map(\.name))
      #expect(quick.replies.last?.snapshot?.map(\.name) == ["ev"] && quick.replies.last?.snapshot?.first?.readings == [])
    }
    slow.hasRoom = true
    watcher.sendPending()
    #expect(slow.changes.isEmpty)
    #expect(slow.replies.last?.snapshot?.first?.readings == [])
    // It is told when the property exists again.
    rig.declare(Self.schema)
    rig.publish((1, .value(.float(13))))
    #expect(slow.changes.map(\.value) == [.float(13)] && quick.changes.map(\.value) == [.float(12.5), .float(13)])
    rig.hub.remove(rig.device)
    #expect(slow.replies.last?.events?.first?.name == Contract.Event.removed)
  }

  @Test func `an interval merges frequent changes`() async throws {
    let rig = Rig()
    let client = Client()
    try rig.hub.subscribe(Watcher(sink: client, interval: 400 * .millisecond), to: ["odometer"])
    for number in 1...20 { rig.publish((1, .value(.int(number)))) }
    #expect(client.changes.isEmpty)
    #expect(await until { !client.changes.isEmpty })
    #expect(client.changes.map(\.value) == [.int(20)])
    withExtendedLifetime(rig) {}
  }

  @Test func `a heartbeat does not delay pending changes`() async throws {
    let rig = Rig()
    let client = Client()
    let watcher = Watcher(sink: client, interval: 100 * .millisecond)
    try rig.hub.subscribe(watcher, to: ["odometer"])
    rig.publish((1, .value(.int(1))))
    #expect(
      await until {
        watcher.sendHeartbeat()
        return !client.changes.isEmpty
      })
    withExtendedLifetime(rig) {}
  }

  @Test func `a delayed snapshot is current when sent`() async throws {
    let rig = Rig()
    let slow = Client()
    let watcher = Watcher(sink: slow, interval: 0)
    try rig.hub.subscribe(watcher, to: ["odometer"])
    slow.hasRoom = false
    rig.publish((1, .value(.int(1))))
    rig.probe.onInput { _, _, effects in effects.append(.status("polling")) }
    rig.device.handle(.wake)
    let before = Clock.boot()
    #expect(await until { Clock.boot() - before > 20 * .millisecond })
    slow.hasRoom = true
    watcher.sendPending()
    let reading = slow.replies.last?.snapshot?.first?.readings
    #expect(reading?.count == 1 && reading?.first?.age ?? 0 >= 0.02)
  }

  @Test func `a reference keeps its target when devices are added`() throws {
    let rig = Rig()
    let client = Client()
    try rig.hub.subscribe(Watcher(sink: client, interval: 0), to: ["rpm"])
    let other = device(Probe(), named: "ev2", Self.schema)
    rig.hub.add(other)
    rig.publish((0, .value(.int(5))))
    #expect(client.changes.map(\.reference) == ["ev.rpm"])
  }

  @Test func `every removal is reported, even hundreds at once`() throws {
    let rig = Rig()
    let slow = Client()
    let watcher = Watcher(sink: slow, interval: 0)
    let others = (0..<200).map { device(Probe(), named: "d\($0)", Self.schema) }
    others.forEach(rig.hub.add)
    try rig.hub.subscribe(watcher, to: nil)
    slow.hasRoom = false
    others.forEach(rig.hub.remove)
    // One of them is added again before anything is sent.
    rig.hub.add(device(Probe(), named: "d7", Self.schema))
    slow.hasRoom = true
    watcher.sendPending()
    #expect(slow.replies[1].events?.count { $0.name == "removed" } == 200)
    #expect(slow.replies[2].snapshot?.map(\.name) == ["d7"])
  }

  @Test func `events and states reach watchers`() throws {
    let rig = Rig()
    let client = Client()
    try rig.hub.subscribe(Watcher(sink: client, interval: 0), to: nil)
    rig.probe.onInput { _, _, effects in
      effects.append(.event(name: "message", text: "hello"))
      effects.append(.status("polling"))
    }
    rig.device.handle(.wake)
    #expect(client.replies[1].events?.first?.text == "hello")
    #expect(client.replies[2].snapshot?.first?.state == "polling")
  }

  @Test func `a removed device is reported once and no longer resolved`() throws {
    let rig = Rig()
    let (client, slow) = (Client(), Client())
    let watcher = Watcher(sink: slow, interval: 0)
    try rig.hub.subscribe(Watcher(sink: client, interval: 0), to: nil)
    try rig.hub.subscribe(watcher, to: nil)
    slow.hasRoom = false
    rig.publish((0, .value(.int(1))))
    rig.hub.remove(rig.device)
    rig.publish((0, .value(.int(2))))
    #expect(client.replies.last?.events?.map(\.name) == ["removed"])
    slow.hasRoom = true
    watcher.sendPending()
    #expect(slow.replies.count == 2 && slow.replies[1].changes == nil && slow.replies[1].events?.count == 1)
    #expect(throws: ContractError.noSuchDevice(device: "ev")) { try rig.hub.resolve("ev.rpm") }
  }

  @Test func `a heartbeat is an empty reply`() throws {
    let rig = Rig()
    let client = Client()
    let watcher = Watcher(sink: client, interval: 0)
    try rig.hub.subscribe(watcher, to: nil)
    let before = Int(Clock.wall())
    watcher.sendHeartbeat()
    let heartbeat = try #require(client.replies.last)
    let time = try #require(heartbeat.time)
    #expect(time >= before && time <= Int(Clock.wall()))
    #expect(heartbeat == Contract.Watch.Result(sequence: 1, time: time))
  }

  @Test func `a new schema keeps values by name and is published`() throws {
    let rig = Rig()
    let client = Client()
    rig.publish((1, .value(.float(12.5))))
    try rig.hub.subscribe(Watcher(sink: client, interval: 0), to: nil)
    let new = Schema(properties: [Property("odometer", .float, lifetime: .retained, help: ""), Property("gear", .string, help: "")])
    rig.declare(new)
    #expect(client.replies.compactMap { $0.schemas?.first }.last?.properties.map(\.name) == ["odometer", "gear"])
    #expect(client.replies.last?.snapshot?.first?.readings.map(\.property) == ["odometer", "gear"])
    #expect(try rig.get("odometer").value == .float(12.5))
    #expect(throws: ContractError.self) { try rig.hub.resolve("rpm") }
  }

  @Test func `a device observes a property of another device`() async {
    let rig = Rig()
    let mirror = Probe()
    mirror.onInput { input, _, effects in
      if case .started = input { effects.append(.observe(reference: "ev.rpm")) }
    }
    let device = vehicledTests.device(mirror, named: "mirror")
    rig.hub.add(device)
    device.open(restored: [:])
    rig.publish((0, .value(.int(824))))
    #expect(await until { mirror.inputTexts.contains { $0.hasSuffix("value(Protocols.Value.int(824))") } })
    #expect(mirror.inputTexts.contains { $0.hasPrefix("observed ev.rpm") && $0.contains("not known yet") })
  }

  @Test func `observers are notified when a device is added or removed`() async {
    let rig = Rig()
    let mirror = Probe()
    mirror.onInput { input, _, effects in
      if case .started = input { ["phone.steps", "ev.rpm"].forEach { effects.append(.observe(reference: $0)) } }
    }
    let device = vehicledTests.device(mirror, named: "mirror")
    rig.hub.add(device)
    device.open(restored: [:])
    func observes(_ content: String) async -> Bool {
      await until { mirror.inputTexts.last { $0.hasPrefix("observed phone") }?.contains(content) == true }
    }
    #expect(await observes("no property phone.steps"))
    let phone = vehicledTests.device(Probe(), named: "phone", Schema(properties: [Property("steps", .int, lifetime: .retained, help: "")]))
    rig.hub.add(phone)
    #expect(await observes("not known yet"))
    phone.observer?.deviceUpdated([Reading(0, .value(.int(4321)))])
    phone.observer?.deviceTurnEnded()
    #expect(await observes("int(4321)"))
    rig.hub.remove(phone)
    #expect(await observes("no property phone.steps"))
    #expect(
      mirror.inputTexts.count { $0.hasPrefix("observed ev.rpm") } == 1, "other references are not observed again: \(mirror.inputTexts)")
  }
}
