// A device's camera: the URL of its stream, from the properties video-url and video.

import Glibc
import Protocols
import Varlink

struct Camera {
  let device: String
  let url: VideoURL

  /// The property with the URL of the stream.
  static let urlProperty = "video-url"
  /// The property that switches the video on.
  private static let switchProperty = "video"

  /// Selects this device, or the only one with a camera. Fails if the video is off.
  init(of device: String?, _ client: Client) throws(Failure) {
    let reference = Reference(device: device, name: Self.urlProperty)
    let schemas = try reference.schemas(client)
    let name = try reference.property(in: schemas).device
    let hasSwitch = schemas.contains { schema in schema.device == name && schema.properties.contains { $0.name == Self.switchProperty } }
    if hasSwitch {
      let readings = try client.call(Contract.Get.self, .init(references: ["\(name).\(Self.switchProperty)"])).readings
      if readings.first?.value == .bool(false) {
        throw .other("no picture from \(name): the video is off; switch it on: vehiclectl set \(name).\(Self.switchProperty) on")
      }
    }
    self.device = name
    url = try VideoURL(try Reference(device: name, name: Self.urlProperty).text(client))
  }
}
