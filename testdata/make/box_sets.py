#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes testdata/boxes: pictures with boxes in VOC's layout, the same boxes as COCO's file, and what peers make of both.

    box_sets.py testdata/boxes

voc/ (JPEGImages, Annotations, ImageSets/Main) and instances.json hold the same five pictures; boxes of the JSON file have x, y, width
and height from 0. read.json: pictures, boxes, categories and crowds as pycocotools reads the JSON file. moved.json: boxes of a 31 x 23
picture as torchvision.transforms.v2 moves them, by the name of the case. Made with pycocotools 2.0.11, torchvision 0.29.2 and Pillow 13.0.
"""
import json
import os
import sys

import numpy as np
import torch
from PIL import Image
from pycocotools.coco import COCO
from torchvision import tv_tensors
from torchvision.transforms.v2 import functional as F

CLASSES = {"bird": 16, "bicycle": 2, "dog": 18}
COLOURS = {"bird": (40, 90, 220), "bicycle": (230, 60, 30), "dog": (60, 200, 70)}
# Name, width, height, and objects: class, corners from 0, difficult.
PICTURES = [
    ("000001", 48, 32, [("dog", (4, 3, 20, 21), 0), ("bird", (30, 10, 48, 32), 0)]),
    ("000002", 40, 40, [("bicycle", (0, 0, 40, 40), 0)]),
    ("000003", 36, 28, []),
    ("000004", 50, 30, [("bird", (5, 5, 15, 15), 1), ("dog", (20, 2, 31, 29), 0), ("bicycle", (33, 6, 47, 20), 0)]),
    ("000005", 44, 36, [("dog", (11, 12, 30, 33), 0), ("bird", (2, 1, 10, 9), 0)]),
]
TRAIN = ["000001", "000002", "000003", "000004"]


def write_voc(root):
    for folder in ("JPEGImages", "Annotations", "ImageSets/Main"):
        os.makedirs(os.path.join(root, folder), exist_ok=True)
    for name, width, height, objects in PICTURES:
        pixels = np.full((height, width, 3), 20, "uint8")
        pixels[:, :, 1] += np.arange(width, dtype="uint8")
        for kind, (x0, y0, x1, y1), _ in objects:
            pixels[y0:y1, x0:x1] = COLOURS[kind]
        Image.fromarray(pixels).save(f"{root}/JPEGImages/{name}.png", optimize=True)
        text = f"""<annotation>
	<folder>VOC2007</folder>
	<filename>{name}.png</filename>
	<size>
		<width>{width}</width>
		<height>{height}</height>
		<depth>3</depth>
	</size>
	<segmented>0</segmented>
"""
        for kind, (x0, y0, x1, y1), difficult in objects:
            # A part has a name and a box of its own, as people have in VOC's person layout.
            part = """		<part>
			<name>head</name>
			<bndbox>
				<xmin>1</xmin>
				<ymin>1</ymin>
				<xmax>2</xmax>
				<ymax>2</ymax>
			</bndbox>
		</part>
""" if kind == "dog" else ""
            text += f"""	<object>
		<name>{kind}</name>
		<pose>Left</pose>
		<truncated>0</truncated>
		<difficult>{difficult}</difficult>
		<bndbox>
			<xmin>{x0 + 1}</xmin>
			<ymin>{y0 + 1}</ymin>
			<xmax>{x1}</xmax>
			<ymax>{y1}</ymax>
		</bndbox>
{part}	</object>
"""
        with open(f"{root}/Annotations/{name}.xml", "w") as file:
            file.write(text + "</annotation>\n")
    with open(f"{root}/ImageSets/Main/trainval.txt", "w") as file:
        file.writelines(name + "\n" for name in TRAIN)
    with open(f"{root}/ImageSets/Main/test.txt", "w") as file:
        file.write("000005\n")
    with open(f"{root}/ImageSets/Main/dog_trainval.txt", "w") as file:
        file.writelines(f"{n} {1 if any(o[0] == 'dog' for o in objects) else -1:2d}\n" for n, _, _, objects in PICTURES if n in TRAIN)


def write_coco(path):
    images = [{"license": 1, "file_name": name + ".png", "height": height, "width": width, "id": int(name) * 7, "coco_url": ""}
              for name, width, height, _ in PICTURES if name in TRAIN]
    boxes = []
    for name, _, _, objects in PICTURES:
        for kind, (x0, y0, x1, y1), crowd in objects if name in TRAIN else []:
            shape = {"counts": [1, 2, 3], "size": [1, 6]} if crowd else [[x0, y0, x1, y0, x1, y1, x0, y1]]
            boxes.append({"segmentation": shape, "area": (x1 - x0) * (y1 - y0), "iscrowd": crowd, "image_id": int(name) * 7,
                          "bbox": [x0, y0, x1 - x0, y1 - y0], "category_id": CLASSES[kind], "id": 900 + len(boxes)})
    boxes = boxes[::-1]  # not in the order of pictures
    kinds = [{"supercategory": "thing", "id": number, "name": kind} for kind, number in CLASSES.items()]
    with open(path, "w") as file:
        json.dump({"info": {"description": "invented", "version": "1.0"}, "licenses": [{"id": 1, "name": "Apache-2.0"}],
                   "images": images, "annotations": boxes, "categories": kinds}, file, indent=1)


def read_coco(path):
    coco = COCO(path)
    categories = coco.loadCats(sorted(coco.getCatIds()))
    number = {c["id"]: i for i, c in enumerate(categories)}
    pictures = []
    for picture in coco.loadImgs(coco.getImgIds()):
        anns = coco.loadAnns(coco.getAnnIds(imgIds=picture["id"]))
        pictures.append({"file": picture["file_name"], "width": picture["width"], "height": picture["height"],
                         "boxes": [a["bbox"] for a in anns], "labels": [number[a["category_id"]] for a in anns],
                         "crowds": [a["iscrowd"] for a in anns]})
    return {"classes": [c["name"] for c in categories], "pictures": pictures}


def move(height, width):
    boxes = [[3, 2, 13, 9], [0, 0, 31, 23], [20.5, 11.25, 30, 22.5], [1, 18, 6, 23]]
    box = tv_tensors.BoundingBoxes(torch.tensor(boxes, dtype=torch.float64), format="XYXY", canvas_size=(height, width))
    cases = {
        "horizontal_flip": F.horizontal_flip(box),
        "vertical_flip": F.vertical_flip(box),
        "resize": F.resize(box, [40, 37]),
        "resize_edge": F.resize(box, [12]),
        "pad": F.pad(box, [1, 2, 3, 4]),
        "center_crop": F.center_crop(box, [13, 8]),
        "center_crop_larger": F.center_crop(box, [30, 36]),
        "rotate_30": F.rotate(box, 30),
        "rotate_90_expand": F.rotate(box, 90, expand=True),
        "rotate_125_center": F.rotate(box, 125, center=[3, 5]),
    }
    moved = {name: {"boxes": b.tolist(), "canvas": list(b.canvas_size)} for name, b in cases.items()}
    return {"height": height, "width": width, "boxes": boxes, "cases": moved}


if __name__ == "__main__":
    out = sys.argv[1]
    write_voc(out + "/voc")
    write_coco(out + "/instances.json")
    for name, value in (("read", read_coco(out + "/instances.json")), ("moved", move(23, 31))):
        with open(f"{out}/{name}.json", "w") as file:
            json.dump(value, file)
            file.write("\n")
