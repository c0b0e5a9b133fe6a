import Testing

@testable import Protocols

/// Settings that survive a restart, without a machine.
@Suite struct PersistedSettingsTests {
  private static let properties = [
    Property("speed", .float, help: ""),
    Property("led", .int, range: 0...100, access: .write, persisted: true, help: ""),
    Property("name", .string, access: .write, persisted: true, help: ""),
    Property("mode", .string, choices: ["eco", "full"], access: .write, persisted: true, help: ""),
    Property("send", .bool, access: .write, persisted: true, help: ""),
  ]
  private static let (speed, led, name, mode, send) = (0, 1, 2, 3, 4)

  private var settings = PersistedSettings(properties)
  private var effects = Effects()

  @Test mutating func `a setting takes effect once it is stored`() throws {
    try settings.set(Self.led, .int(70), for: 1, &effects)
    #expect(effects.list == [.store(key: "led", Array("70".utf8))])
    #expect(settings[Self.led] == nil && settings.latest(Self.led) == .int(70) && settings.isStoring)
    let change = try #require(settings.stored("led", nil, &effects))
    #expect((change.id, change.property, change.value) == (1, Self.led, .int(70)))
    #expect(settings[Self.led] == .int(70) && !settings.isStoring && effects.list.count == 1)
    #expect(settings.stored("led", nil, &effects) == nil)
  }

  @Test mutating func `if a setting cannot be stored, its command fails and the old value remains`() throws {
    try settings.set(Self.led, .int(70), for: 1, &effects)
    _ = settings.stored("led", nil, &effects)
    try settings.set(Self.led, .int(30), for: 2, &effects)
    #expect(settings.stored("led", "no space", &effects) == nil)
    #expect(effects.list.last == .complete(2, .failure(.refused(code: .notStored, "no space"))))
    #expect(settings[Self.led] == .int(70) && settings.latest(Self.led) == .int(70))
  }

  @Test mutating func `changes of one setting take effect in order, and the last one counts for the next command`() throws {
    try settings.set(Self.led, .int(10), for: 1, &effects)
    try settings.set(Self.send, .bool(true), for: 2, &effects)
    try settings.set(Self.led, .int(20), for: 3, &effects)
    #expect(settings.latest(Self.led) == .int(20))
    #expect(settings.stored("led", nil, &effects)?.id == 1 && settings[Self.led] == .int(10) && settings.latest(Self.led) == .int(20))
    #expect(settings.stored("led", "no space", &effects) == nil && settings.latest(Self.led) == .int(10))
    #expect(settings.stored("send", nil, &effects)?.id == 2 && settings[Self.send] == .bool(true))
  }

  @Test mutating func `an empty string unsets a setting and removes its file`() throws {
    try settings.set(Self.name, .string("Ada"), for: 1, &effects)
    _ = settings.stored("name", nil, &effects)
    try settings.set(Self.name, .string(""), for: 2, &effects)
    #expect(effects.list.last == .store(key: "name", []) && settings.latest(Self.name) == nil && settings[Self.name] == .string("Ada"))
    #expect(settings.stored("name", nil, &effects)?.id == 2 && settings[Self.name] == nil)
  }

  @Test mutating func `only values that the declaration permits are stored`() throws {
    for (property, value) in [(Self.led, Value.int(101)), (Self.led, .string("x")), (Self.mode, .string("turbo")), (Self.send, .int(1))] {
      let error = #expect(throws: CommandError.self) { try settings.set(property, value, for: 1, &effects) }
      guard case .invalid(argument: "value", _)? = error else { Issue.record("\(value): \(String(describing: error))"); continue }
    }
    #expect(throws: CommandError.refused(code: .readOnly, "speed is not a setting")) {
      try settings.set(Self.speed, .float(1), for: 1, &effects)
    }
    #expect(effects.isEmpty && !settings.isStoring)
  }

  @Test mutating func `the number of pending commands is bounded`() throws {
    for id in 0..<CommandID(32) { try settings.set(Self.led, .int(1), for: id, &effects) }
    #expect(throws: CommandError.refused(code: .busy, "too many pending writes to disk: try again later")) {
      try settings.set(Self.led, .int(1), for: 99, &effects)
    }
    try settings.set(Self.mode, .string("eco"), for: nil, &effects)
    #expect(effects.list.count == 33)
  }

  @Test mutating func `stored settings are restored, and damaged ones reported`() {
    let files = [
      "led": "70", "name": "Ada", "mode": "turbo", "send": "on", "speed": "3", "other": "x",
    ].mapValues { Array($0.utf8) }
    #expect(settings.restore(files) == ["mode"])
    #expect(settings[Self.led] == .int(70) && settings[Self.name] == .string("Ada") && settings[Self.send] == .bool(true))
    #expect(settings[Self.mode] == nil && settings[Self.speed] == nil)
    for bytes in [[], [0xFF], Array("900".utf8)] as [[UInt8]] {
      var other = PersistedSettings(Self.properties)
      #expect(other.restore(["led": bytes, "name": bytes]) { $1 != .string("900") && $1 != .string("\u{FFFD}") } == ["led", "name"])
      #expect(other[Self.led] == nil && other[Self.name] == nil)
    }
  }

  @Test mutating func `every value reads back as it was stored`() throws {
    for (property, value) in [
      (Self.led, Value.int(0)), (Self.name, .string("on")), (Self.mode, .string("full")), (Self.send, .bool(false)),
    ] {
      try settings.set(property, value, for: nil, &effects)
      guard case .store(let key, let bytes)? = effects.list.last else { Issue.record("nothing is stored"); continue }
      var next = PersistedSettings(Self.properties)
      #expect(next.restore([key: bytes]).isEmpty && next[property] == value)
    }
  }

  @Test mutating func `a cancelled command is not completed, but its setting is stored`() throws {
    try settings.set(Self.led, .int(1), for: 1, &effects)
    try settings.set(Self.led, .int(2), for: 2, &effects)
    settings.cancel(1)
    #expect(settings.stored("led", nil, &effects)?.id == nil && settings[Self.led] == .int(1))
    settings.failCommands(.notConnected("closing"), &effects)
    #expect(effects.list.last == .complete(2, .failure(.notConnected("closing"))))
    let count = effects.list.count
    #expect(settings.stored("led", nil, &effects)?.value == .int(2) && effects.list.count == count)
  }
}
