// The sandbox of the service: which devices its unit allows.

import Glibc

enum Sandbox {
  /// How to allow a device that `DeviceAllow=` of the unit does not list; opening such a device fails with EPERM. Names its major number,
  /// because a path would have to exist when the service starts. Source: bpf_devices_allow_list_major in systemd.
  static func remedy(forDevice path: String) -> String {
    var state = stat()
    let device = stat(path, &state) == 0 ? "char-\(state.st_rdev >> 8 & 0xfff)" : path
    return "add DeviceAllow=\(device) rw to [Service] with \"systemctl edit vehicled\", and restart it"
  }
}
