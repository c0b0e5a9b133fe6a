// NetworkManager: which networks are offered, and that the toy's network is joined temporarily and the previous one restored, in all cases.
// On a private message bus.

import DBus
import Glibc
import Protocols
import Testing

@testable import vehiclectl

@Suite struct ToyNetworkTests {
  func plain(_ text: String, _ style: Style) -> String { text }

  private func point(_ ssid: [UInt8], _ frequency: Int = 2412, _ strength: Int = 50, _ security: AccessPoint.Security = .password)
    -> AccessPoint
  {
    AccessPoint(ssid: ssid, frequency: frequency, strength: strength, security: security)
  }

  private func point(_ name: String, _ frequency: Int = 2412, _ strength: Int = 50, _ security: AccessPoint.Security = .password)
    -> AccessPoint
  {
    point(Array(name.utf8), frequency, strength, security)
  }

  @Test func `one row per name, strongest first, 2.4 GHz only`() {
    let nearby = NearbyNetworks([
      point("Home", 2412, 40), point("Home", 2462, 71), point("Home", 5180, 99), point("Café", 2437, 80, .open), point("Fast", 5240, 90),
      point("Uni", 2412, 60, .enterprise), point("New", 2412, 60, .other), point([], 2412), point([0, 0], 2412),
    ])
    #expect(nearby.offered.map(\.name) == ["Café", "Home"] && nearby.offered.map(\.strength) == [80, 71])
    let lines = nearby.lines(paint: plain)
    #expect(
      lines[0] == "   network  signal  security" && lines[1] == "1  Café       80 %  open" && lines[2] == "2  Home       71 %  password")
    #expect(
      lines[3]
        == "Not shown, because the toy cannot join them: 1 not on 2.4 GHz, 1 with an enterprise login, "
        + "1 with WPA3, WEP or other unsupported security, 2 with hidden names")
    #expect(NearbyNetworks([]).lines(paint: plain) == ["No network in range that the toy can join"])
  }

  @Test func `names that could deceive are not offered`() {
    let hostile: [[UInt8]] = [
      Array("a\u{1b}[2Jb".utf8), Array("a\nb".utf8), Array("a\u{202e}b".utf8), [UInt8](repeating: 0xff, count: 32), Array("a:b".utf8),
      Array("a\"b".utf8), Array("a\\b".utf8), [UInt8](repeating: 97, count: 33), [97, 0],
    ]
    let nearby = NearbyNetworks(hostile.map { point($0) } + [point("ok")])
    #expect(nearby.offered.map(\.name) == ["ok"])
    #expect(nearby.excluded == ["9 with unsupported names"])
  }

  @Test(arguments: [
    (0, 0, 0, AccessPoint.Security.open), (1, 0, 0x188, .password), (1, 0x144, 0, .password), (1, 0, 0x588, .password), (1, 0, 0, .other),
    (1, 0, 0x288, .enterprise), (1, 0, 0x2088, .enterprise), (1, 0, 0x488, .other), (0, 0, 0x888, .other), (0, 0, 0x1000, .open),
  ])
  func `flags determine the security`(_ flags: Int, _ wpa: Int, _ rsn: Int, _ security: AccessPoint.Security) {
    let properties: [String: DBusValue] = [
      "Frequency": .uint32(2412), "Flags": .uint32(UInt32(flags)), "WpaFlags": .uint32(UInt32(wpa)), "RsnFlags": .uint32(UInt32(rsn)),
      "Strength": .byte(200),
    ]
    let point = AccessPoint(properties)
    #expect(point?.security == security && point?.strength == 100)
    #expect(AccessPoint(["Ssid": .bytes([97])]) == nil)
  }

  @Test func `invalid replies are ignored`() {
    for odd in [nil, DBusValue.string("x"), .array(of: "s", []), .array(of: "{ss}", [.entry(.string("a"), .string("b"))])] {
      let snapshot = NetworkSnapshot(odd)
      #expect(snapshot.devices.isEmpty && snapshot.usable.isEmpty && snapshot.find("Trivio") == nil)
    }
  }

  @Test func `an idle device is preferred, an unmanaged one is not used`() {
    func device(_ number: Int, _ state: UInt32) -> DBusValue {
      let wireless: [String: DBusValue] = ["AccessPoints": .array(of: "o", [.path("/ap")]), "LastScan": .int64(-1)]
      let interfaces: [String: [String: DBusValue]] = [
        "org.freedesktop.NetworkManager.Device": ["State": .uint32(state), "ActiveConnection": .path("/")],
        "org.freedesktop.NetworkManager.Device.Wireless": wireless,
      ]
      return .entry(.path("/d/\(number)"), .array(of: "{sa{sv}}", interfaces.map { .entry(.string($0.key), .properties($0.value)) }))
    }
    let properties: [String: DBusValue] = ["Ssid": .bytes(Array("Trivio".utf8)), "Frequency": .uint32(2422)]
    let point = DBusValue.entry(
      .path("/ap"), .array(of: "{sa{sv}}", [.entry(.string("org.freedesktop.NetworkManager.AccessPoint"), .properties(properties))]))
    let all = NetworkSnapshot(.array(of: "{oa{sa{sv}}}", [device(1, 10), device(2, 100), device(3, 30), point]))
    #expect(all.usable.map(\.path) == ["/d/3", "/d/2"] && all.find("Trivio")?.device.path == "/d/3")
    #expect(all.find("Trivio ") == nil)
  }

  @Test func `a toy that disappears is searched for again`() throws {
    let bus = try TestBus()
    let manager = try MockNetworkManager(bus) {
      $0.points = [.open("Trivio")]
      $0.outcome = .fails(53)
    }
    var (_, network, failure) = try joinTemporarily(bus)
    #expect(failure?.message == "cannot join \"Trivio\": out of range or switched off; press the toy's Wi-Fi button again")
    #expect(manager.log.count > 3 && manager.log.allSatisfy { $0 == "join vehiclectl Trivio" })
    #expect(network.restore() == "reconnected to \"Home \"5\"\"" && manager.active == "Home \"5\"")
  }

  // MARK: With a mock

  /// Advances until the network is joined or an error.
  private func joinTemporarily(_ bus: TestBus) throws -> (messages: Set<String>, network: TemporaryNetwork, failure: Failure?) {
    var network = try TemporaryNetwork("Trivio", try #require(NetworkManager(address: bus.address)))
    var messages: Set<String> = []
    do {
      // A virtual clock: half a second per step.
      for step in 0..<200 {
        if let doing = try network.advance(at: Double(step) / 2) { messages.insert(doing) }
        if network.isJoined { return (messages, network, nil) }
      }
    } catch { return (messages, network, error) }
    return (messages, network, nil)
  }

  @Test func `the toy's network is joined with a volatile profile, the previous one restored`() throws {
    let bus = try TestBus()
    let manager = try MockNetworkManager(bus) { $0.points = [.locked("Home"), .open("Trivio")] }
    var (_, network, failure) = try joinTemporarily(bus)
    #expect(failure == nil && network.isJoined && manager.active == "vehiclectl Trivio")
    let (settings, options) = manager.state.withLock { ($0.settings?.dictionary, $0.options) }
    #expect(options["persist"] == .string("volatile") && options["bind-activation"] == .string("dbus-client"))
    #expect(settings?["802-11-wireless"]?.dictionary?["ssid"] == .bytes(Array("Trivio".utf8)))
    #expect(settings?["ipv4"]?.dictionary?["dhcp-timeout"] == .int32(25), "shorter than the 60 s for allso that the reason is known")
    #expect(settings?["802-11-wireless-security"] == nil && settings?["connection"]?.dictionary?["autoconnect"] == .bool(false))
    #expect(network.restore() == "reconnected to \"Home \"5\"\"" && network.restore() == nil)
    #expect(manager.active == "Home \"5\"" && manager.profiles == ["Home \"5\""])
    #expect(manager.log == ["join vehiclectl Trivio", "activate Home \"5\""])
  }

  @Test func `reconnecting is requested once, however long disconnecting takes`() throws {
    let bus = try TestBus()
    let manager = try MockNetworkManager(bus) { $0.points = [.open("Trivio")] }
    var (_, network, _) = try joinTemporarily(bus)
    manager.state.withLock { $0.leaving = 6 }
    #expect(network.restore() == "reconnected to \"Home \"5\"\"" && manager.log == ["join vehiclectl Trivio", "activate Home \"5\""])
    #expect(manager.profiles == ["Home \"5\""])
  }

  @Test func `without a previous connection none is restored`() throws {
    let bus = try TestBus()
    let manager = try MockNetworkManager(bus) {
      $0.points = [.open("Trivio")]
      $0.active = nil
    }
    var (_, network, failure) = try joinTemporarily(bus)
    #expect(failure == nil && network.restore() == "disconnected from \"Trivio\"")
    #expect(
      manager.active == nil && manager.log == ["join vehiclectl Trivio", "deactivate vehiclectl Trivio"] && manager.profiles.count == 1)
  }

  @Test func `a remaining profile is deleted`() throws {
    let bus = try TestBus()
    let manager = try MockNetworkManager(bus) { $0.points = [.open("Trivio")] }
    var (_, network, _) = try joinTemporarily(bus)
    manager.state.withLock { $0.volatile = [] }
    #expect(network.restore() == "reconnected to \"Home \"5\"\"")
    #expect(manager.log.last == "delete vehiclectl Trivio" && manager.profiles == ["Home \"5\""])
  }

  @Test func `the search goes on until the button is pressed`() throws {
    let bus = try TestBus()
    let manager = try MockNetworkManager(bus) { $0.late = (.open("Trivio"), after: 3) }
    var (messages, network, failure) = try joinTemporarily(bus)
    #expect(failure == nil && network.isJoined && manager.state.withLock { $0.scans } == 3)
    #expect(messages.contains("waiting for the network \"Trivio\": press the toy's Wi-Fi button until its light is white"))
    _ = network.restore()
  }

  @Test func `an idle device is used even if it finds the toy later, within its timeout`() throws {
    let bus = try TestBus()
    let manager = try MockNetworkManager(bus) {
      $0.points = [.open("Trivio")]
      $0.spare = 3
    }
    let (_, first, _) = try joinTemporarily(bus)
    #expect(first.isJoined && manager.state.withLock { $0.joining } == MockNetworkManager.spare)
    manager.state.withLock { $0 = .init(points: [.open("Trivio")], spare: 1000) }
    let (messages, second, _) = try joinTemporarily(bus)
    #expect(second.isJoined && manager.state.withLock { $0.joining } == MockNetworkManager.device)
    #expect(messages.contains("waiting for the network \"Trivio\": press the toy's Wi-Fi button until its light is white"))
  }

  @Test func `a network that is not found is an error that suggests another name`() throws {
    let bus = try TestBus()
    let manager = try MockNetworkManager(bus) { $0.points = [.open("ESP_A1B2C3"), .locked("ESP_locked")] }
    var (_, network, failure) = try joinTemporarily(bus)
    #expect(failure?.exitCode == 1 && failure?.message.contains("network \"Trivio\" not found within 60 s") == true)
    #expect(failure?.message.hasSuffix("; \"ESP_A1B2C3\" may be the toy: --join=ESP_A1B2C3") == true)
    #expect(network.restore() == nil && manager.log.isEmpty)
  }

  @Test func `a failed join has a reason, the previous connection is restored`() throws {
    let bus = try TestBus()
    let manager = try MockNetworkManager(bus) {
      $0.points = [.open("Trivio")]
      $0.outcome = .fails(17)
    }
    var (_, network, failure) = try joinTemporarily(bus)
    #expect(failure?.message.hasPrefix("cannot join \"Trivio\": no IP address") == true)
    #expect(network.restore() == "reconnected to \"Home \"5\"\"" && manager.active == "Home \"5\"" && manager.profiles == ["Home \"5\""])
  }

  @Test func `joining has a timeout`() throws {
    let bus = try TestBus()
    let manager = try MockNetworkManager(bus) {
      $0.points = [.open("Trivio")]
      $0.outcome = .never
    }
    var (messages, network, failure) = try joinTemporarily(bus)
    #expect(messages == ["joining \"Trivio\""] && failure?.message.contains("timeout after 60 s") == true)
    #expect(network.restore() == "reconnected to \"Home \"5\"\"" && manager.profiles == ["Home \"5\""])
  }

  @Test func `a failed reconnection is reported with the command for it`() throws {
    let bus = try TestBus()
    let manager = try MockNetworkManager(bus) { $0.points = [.open("Trivio")] }
    var (_, network, _) = try joinTemporarily(bus)
    manager.state.withLock { $0.profiles = $0.profiles.filter { $0.value == "vehiclectl Trivio" } }
    #expect(
      network.restore()
        == "cannot reconnect to \"Home \"5\"\": NetworkManager rejected the call: no such profile; try: nmcli connection up 'Home \"5\"'")
    #expect(manager.active == nil && manager.profiles.isEmpty)
  }

  @Test func `missing permission is an error and nothing is changed`() throws {
    let bus = try TestBus()
    let manager = try MockNetworkManager(bus) {
      $0.points = [.open("Trivio")]
      $0.outcome = .refused("org.freedesktop.NetworkManager.PermissionDenied")
    }
    var (_, network, failure) = try joinTemporarily(bus)
    #expect(failure == .noAccessToNetworks && failure?.exitCode == 7 && network.restore() == nil && manager.log.isEmpty)
    manager.state.withLock { $0.outcome = .refused("org.freedesktop.NetworkManager.InvalidConnection") }
    let other = try joinTemporarily(bus)
    #expect(other.failure?.message == "NetworkManager rejected the call: Not authorized to control networking.")
  }

  @Test func `missing permission to scan is an error unless the toy is in range`() throws {
    let bus = try TestBus()
    let manager = try MockNetworkManager(bus) { $0.refusesScans = true }
    let (messages, _, failure) = try joinTemporarily(bus)
    #expect(failure == .noAccessToNetworks && messages.isEmpty && manager.log.isEmpty)
    manager.state.withLock { $0.points = [.open("Trivio")] }
    var (_, network, none) = try joinTemporarily(bus)
    #expect(none == nil && network.isJoined)
    _ = network.restore()
  }

  @Test func `missing or disabled Wi-Fi is an error at once`() throws {
    let bus = try TestBus()
    let manager = try MockNetworkManager(bus) { $0.hasDevice = false }
    #expect(throws: Failure.self) { try joinTemporarily(bus) }
    manager.state.withLock { $0.isOn = false }
    do {
      _ = try joinTemporarily(bus)
      Issue.record("it was accepted")
    } catch { #expect((error as? Failure)?.message.contains("nmcli radio wifi on") == true) }
  }

  @Test func `without a bus or NetworkManager there is no client`() throws {
    let bus = try TestBus()
    #expect(NetworkManager(address: bus.address) == nil)
    #expect(NetworkManager(address: "unix:path=/nonexistent/bus") == nil)
  }
}
