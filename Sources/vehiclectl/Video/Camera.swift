// A device's camera, as the daemon tells of it: where its stream is, and whether it is on. Asks and reads only.

import Glibc
import Protocols

struct Camera {
  let device: String
  let url: VideoURL

  /// Where the stream is, and whether it is on.
  static let address = "video-url"
  private static let toggle = "video"

  /// Of this device, or of the only one that has a camera.
  init(of device: String?, _ client: Client) throws(Failure) {
    let reference = Reference(device: device, name: Self.address)
    let schemas = try reference.schemas(client)
    let found = try reference.property(in: schemas).device
    let hasToggle = schemas.contains { schema in schema.device == found && schema.properties.contains { $0.name == Self.toggle } }
    if hasToggle {
      let readings = try client.call(Contract.Get.self, .init(references: ["\(found).\(Self.toggle)"])).readings
      if readings.first?.value == .bool(false) {
        throw .other("the video of \(found) is off; switch it on: vehiclectl set \(found).\(Self.toggle) on")
      }
    }
    self.device = found
    url = try VideoURL(try Reference(device: found, name: Self.address).text(client))
  }

  /// `FILE`, or `DEVICE FILE`.
  static func operands(_ first: String, _ second: String?) -> (device: String?, file: String) {
    second.map { (first, $0) } ?? (nil, first)
  }

  /// Bytes of pictures say nothing to a person.
  static func refuseTerminal(_ file: String) throws(Failure) {
    if file == "-", Terminal.isTerminal(STDOUT_FILENO) {
      throw .usage("pictures cannot be shown on a terminal; name a file, or send them on with > FILE")
    }
  }
}
