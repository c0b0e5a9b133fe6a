// ELM327 adapters on Bluetooth Low Energy. Source: published GATT tables (Veepeak, KONNWEI and OBDLink CX; HM-10 and LELink; Vgate iCar Pro
// and vLinker; Microchip and Nordic modules). Other devices use the same services, so a device that ble:auto finds must reply to ATI first.

extension PeripheralDescription {
  public static let elm327 = PeripheralDescription(
    profiles: [
      GATTProfile("FFF0", notify: "FFF1", write: "FFF2"),
      GATTProfile("18F0", notify: "2AF0", write: "2AF1"),
      GATTProfile(
        "E7810A71-73AE-499D-8C15-FAA9AEF0C3F2", notify: "BEF8D6C9-9C21-4C9E-B632-BD58C1009F9F",
        write: "BEF8D6C9-9C21-4C9E-B632-BD58C1009F9F"),
      .hm10,
      GATTProfile(
        "49535343-FE7D-4AE5-8FA9-9FAFD205E455", notify: "49535343-1E4D-4BD9-BA61-23C647249616",
        write: "49535343-8841-43F4-A8D4-ECBE34729BB3"),
      .nordicUART,
    ],
    names: ["OBD", "ELM", "Veepeak", "Vlink", "V-LINK", "KONNWEI"],
    isStream: true,
    probe: Probe(Array("ATI\r".utf8)) { reply in
      guard reply.contains(prompt) || reply.count > 256 else { return nil }
      let text = String(decoding: reply, as: UTF8.self).uppercased()
      return ["ELM327", "STN", "OBD", "VLINK"].contains { text.contains($0) }
    })
}
