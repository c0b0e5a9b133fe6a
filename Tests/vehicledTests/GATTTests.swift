// BLE targets, and the choice of characteristics.

import DBus
import Protocols
import Testing

@testable import vehicled

@Suite struct GATTTests {
  private func characteristic(_ service: GATTUUID, _ uuid: GATTUUID, _ flags: String...) -> Characteristic {
    Characteristic(
      path: "/\(service)/\(uuid)", uuid: uuid, service: service, flags: Set(flags), mtu: nil, supportsAcquireNotify: false,
      supportsAcquireWrite: false)
  }

  private let plain = "write-without-response"

  @Test func `all notations of a UUID are equal`() {
    func read(_ text: String) -> GATTUUID? { GATTUUID(text) }
    #expect(read("fff0") == "FFF0" && read("0000FFF0-0000-1000-8000-00805F9B34FB") == "FFF0")
    #expect(read("0000fff0")?.description == "FFF0" && read("12345678")?.description == "12345678")
    #expect(read("6E400001-B5A3-F393-E0A9-E50E24DCCA9E")?.description == "6e400001-b5a3-f393-e0a9-e50e24dcca9e")
    for odd in ["", "FFF", "GGGG", "FFF0 ", "0000fff0-0000-1000-8000-00805f9b34f", "0000fff000001000800000805f9b34fb", "-", "FF-0"] {
      #expect(read(odd) == nil, "\(odd)")
    }
  }

  @Test(arguments: [
    ("Veepeak", "Veepeak", true), ("Veepeak", "Veepeak BLE", false), ("Veepeak*", "Veepeak BLE", true), ("Veepeak*", "My Veepeak", false),
    ("*peak*", "Veepeak", true), ("*peak*", "OBDII", false), ("auto", "IOS-Vlink", true), ("auto", "obdii", true),
    ("auto", "HMSoft", false),
    ("aa:bb:cc:dd:ee:ff", "anything", true), ("aa:bb:cc:dd:ee:fe", "AA:BB:CC:DD:EE:FF", false),
  ]) func `a peripheral matches by its name or address`(_ text: String, _ name: String, _ matches: Bool) {
    let target = BLETarget(match: BLETarget.Match(text))
    #expect(target.matches(address: "AA:BB:CC:DD:EE:FF", name: name, description: .elm327) == matches)
    #expect(target.matches(address: "AA:BB:CC:DD:EE:FF", name: nil, description: .elm327) == text.hasPrefix("aa:bb:cc:dd:ee:ff"))
  }

  /// OBDLink CX: the first pair that can notify and be written is its firmware update.
  private var obdLink: [Characteristic] {
    [
      characteristic("FEF5", "8082CAA8-41A6-4021-91C6-56F9B954CC34", "read", "write", "notify"),
      characteristic("FFF0", "FFF1", "notify"), characteristic("FFF0", "FFF2", "write", plain),
    ]
  }

  private func choose(_ link: String, _ all: [Characteristic], _ description: PeripheralDescription = .elm327) throws -> String {
    guard case .ble(let target) = try LinkURL(link) else { return "" }
    let choice = try GATTChoice(target, description, among: all)
    return
      "\(choice.notify.map { "\($0.uuid)" } ?? "-") \(choice.write.map { "\($0.uuid)" } ?? "-") \(choice.isAcknowledged ? "acknowledged" : "plain")"
  }

  @Test func `the kind's profiles take precedence`() throws {
    #expect(try choose("ble:x", obdLink) == "FFF1 FFF2 acknowledged")
    #expect(try choose("ble:x?response=no", obdLink) == "FFF1 FFF2 plain")
    let hm10 = [characteristic("FFE0", "FFE1", "read", "notify", plain)]
    #expect(try choose("ble:x", hm10) == "FFE1 FFE1 plain")
    #expect(try choose("ble:x", hm10 + obdLink) == "FFF1 FFF2 acknowledged")
    #expect(try choose("ble:x?service=FFE0", hm10 + obdLink) == "FFE1 FFE1 plain")
  }

  @Test func `characteristics in the URL are used, and missing ones are found in the same service`() throws {
    let odd = [characteristic("ABCD", "0001", "indicate"), characteristic("ABCD", "0002", "write")]
    #expect(try choose("ble:x?service=ABCD", odd) == "0001 0002 acknowledged")
    #expect(try choose("ble:x?write=0002", odd) == "0001 0002 acknowledged")
    #expect(try choose("ble:x?write=0002&notify=0001", odd) == "0001 0002 acknowledged")
    let silent = PeripheralDescription(profiles: [GATTProfile("C0FE", notify: nil, write: "3DEE")], names: [], isStream: false)
    #expect(try choose("ble:x", [characteristic("C0FE", "3DEE", "read", "write")], silent) == "- 3DEE acknowledged")
  }

  /// A chest strap: two services, neither of which is written to for its values.
  private var strap: [Characteristic] {
    [
      characteristic("180D", "2A37", "notify"), characteristic("180D", "2A38", "read"), characteristic("180D", "2A39", "write"),
      characteristic("180F", "2A19", "read", "notify"),
    ]
  }

  @Test func `a read-only peripheral needs no writable characteristic`() throws {
    let description = PeripheralDescription(profiles: [GATTProfile("180D", notify: "2A37", write: nil)], names: [], isStream: false)
    #expect(try choose("ble:x", strap, description) == "2A37 - plain")
    #expect(try choose("ble:x?response=yes", strap, description) == "2A37 - plain")
    #expect(try choose("ble:x?service=180F", strap, description) == "2A19 - plain")
    #expect(try choose("ble:x?write=2A39&notify=2A37", strap, description) == "2A37 2A39 acknowledged")
    #expect(throws: ValueError.self) { try choose("ble:x?service=180A", strap, description) }
    #expect(throws: ValueError.self) { try choose("ble:x", [characteristic("180D", "2A37", "read")], description) }
    // The writable characteristic is chosen as usual.
    #expect(throws: ValueError.self) { try choose("ble:x?service=180F", strap) }
    let nothing = PeripheralDescription(profiles: [GATTProfile("180D", notify: nil, write: nil)], names: [], isStream: false)
    #expect(throws: ValueError.self) { try choose("ble:x", strap, nothing) }
  }

  @Test func `errors name the available characteristics`() {
    func failure(_ link: String, _ all: [Characteristic]) -> String {
      do { return try choose(link, all) } catch { return "\(error)" }
    }
    #expect(
      failure("ble:x", []) == "no known service for this kind; it has no characteristics: set service=, notify= and write="
    )
    #expect(failure("ble:x", [characteristic("180A", "2A29", "read")]).contains("it has 180A (2A29)"))
    #expect(
      failure("ble:x", [characteristic("FFF0", "FFF1", "read"), characteristic("FFF0", "FFF2", "write")])
        == "characteristic FFF1 does not support notify: it has read")
    #expect(
      failure("ble:x", [characteristic("FFF0", "FFF1", "notify"), characteristic("FFF0", "FFF2")])
        == "characteristic FFF2 is not writable: it has no properties")
    let many = (0..<500).map { characteristic(GATTUUID("\(1000 + $0)") ?? "0000", "2A29", "read") }
    #expect(failure("ble:x", many).utf8.count < 400)
  }

  @Test(arguments: [
    ("org.bluez.Error.Failed", "le-connection-abort-by-local", "no response"), ("org.bluez.Error.InProgress", "", "already"),
    ("org.bluez.Error.AuthenticationFailed", "x", "bluetoothctl pair ADDRESS"), ("org.bluez.Error.NotReady", "", "power on"),
    ("org.freedesktop.DBus.Error.AccessDenied", "no", "group bluetooth"), ("org.freedesktop.DBus.Error.UnknownObject", "", "removed"),
    ("org.bluez.Error.Failed", "br-connection-profile-unavailable", "rfcomm"),
    ("org.bluez.Error.Failed", "Input/output error", "input/output error"),
  ]) func `errors of BlueZ have a remedy`(_ name: String, _ text: String, _ remedy: String) {
    #expect(DBusError.refused(name: name, text: text).connectFailure.reason.contains(remedy))
  }

  @Test func `an adapter is recognised by its reply to ATI`() throws {
    let accepts = try #require(PeripheralDescription.elm327.probe).accepts
    #expect(accepts(Array("ATI\rELM327 v1.5\r\r>".utf8)) == true)
    #expect(accepts(Array("ELM327 v1".utf8)) == nil)
    #expect(accepts(Array("hello>".utf8)) == false)
    #expect(accepts([UInt8](repeating: 0, count: 300)) == false)
  }
}
