// The supported kinds of device. A new kind is a folder in Protocols and one line here.

import Protocols

let registry: [Kind] = [.obd, .longboard, .car, .mirror, .health, .heartRate, .running, .weather, .toy]
